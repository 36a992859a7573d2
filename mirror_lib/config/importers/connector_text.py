"""The file written by an import of connectors: its sections and comments. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror_lib.config.importers.connector_flows import ImportedFlow
from mirror_lib.config.importers.model import ConnectorKind
from mirror_lib.config.importers.questions import Question
from mirror_lib.config.importers.written_file import Listed, Placed, comment, section, setting, without_effect

_SCHEDULE = "5m"


def connectors_file(
    flows: Sequence[ImportedFlow],
    clusters: Sequence[Placed],
    providers: Sequence[Placed],
    expected: Sequence[str],
    listed: Sequence[Listed],
    notes: Sequence[str],
    questions: Sequence[Question],
) -> str:
    """Return the text of the file, in ASCII."""
    aliases = tuple(dict.fromkeys(alias for each in flows for alias in (each.flow.source, each.flow.target)))
    parts = [
        _head(flows, notes, questions),
        [setting("clusters", ", ".join(aliases)), ""],
    ]
    if providers:
        parts.append(section("Where secrets come from", _providers(providers, expected)))
    parts.append(section("Clusters", _clusters(aliases, clusters)))
    parts.append(section("All flows", _all_flows()))
    parts += [section(f"Flow {each.flow}", _flow(each, bool(questions))) for each in flows]
    parts.append(section("How to continue where Connect stopped", _positions(flows)))
    parts.append(section("What has no effect here", without_effect(listed)))
    if questions:
        parts.append(section("Questions", _questions(questions)))
    return "\n".join(line.rstrip() if line.startswith("#") else line for part in parts for line in part)


def _head(flows: Sequence[ImportedFlow], notes: Sequence[str], questions: Sequence[Question]) -> list[str]:
    lines = [
        *comment(
            "Made by `mirror config import` from connectors of MirrorMaker 2. The format is MirrorMaker 2's. It may "
            "hold passwords: keep it readable for nobody else."
        ),
        "#",
        "#   mirror config check FILE",
        *(line for each in flows for line in comment(f"mirror config show FILE --flow '{each.flow}'", "  ")),
    ]
    if questions:
        lines += ["#", *comment("No flow is enabled, since questions are open: they stand at the end.")]
    if notes:
        lines += ["#", "# Notes:"]
        for note in notes:
            first, *more = list(comment(note, "  "))
            lines += [f"# - {first[4:]}", *more]
    return [*lines, ""]


def _providers(providers: Sequence[Placed], expected: Sequence[str]) -> Iterator[str]:
    yield from (setting(each.key, each.value) for each in providers)
    yield from comment("Every machine that plans runs or runs tasks needs:")
    for each in expected:
        yield from comment(each, "  ")


def _clusters(aliases: Sequence[str], clusters: Sequence[Placed]) -> Iterator[str]:
    for alias in aliases:
        own = [each for each in clusters if each.key == f"{alias}.{each.name}"]
        for origin in dict.fromkeys(each.origin for each in own):
            yield from comment(f"{alias}, from {origin}:")
            yield from (setting(each.key, each.value) for each in own if each.origin == origin)


def _all_flows() -> Iterator[str]:
    yield from comment(
        "No pair of clusters emits heartbeats by itself: a flow that had a MirrorHeartbeatConnector says so below."
    )
    yield "emit.heartbeats.enabled = false"


def _flow(flow: ImportedFlow, undecided: bool) -> Iterator[str]:
    yield from comment(f"Connectors: {', '.join(flow.names)}.")
    for note in flow.notes:
        yield from comment(note)
    for origin in dict.fromkeys(each.origin for each in flow.lines):
        yield from comment(f"{origin}:")
        for each in flow.lines:
            if each.origin != origin:
                continue
            if undecided and each.key == f"{flow.flow}.enabled" and each.value == "true":
                yield from comment("It becomes true when the questions are answered.")
                yield setting(each.key, "false")
            else:
                yield setting(each.key, each.value)
    if ConnectorKind.SOURCE not in flow.kinds:
        return
    schedule = setting(f"{flow.flow}.mirror.schedule", _SCHEDULE)
    if flow.paused:
        yield from comment("Its connector was paused, so this flow runs by hand only. To run it every five minutes:")
        yield f"#   {schedule}"
    else:
        yield from comment(
            "Connect ran all the time. This flow runs every five minutes; without the line, by hand only."
        )
        yield schedule


def _positions(flows: Sequence[ImportedFlow]) -> Iterator[str]:
    yield from comment(
        "Only one of the two may run a flow at a time. The first run refuses a partition that Connect has copied "
        "already (target-not-empty) until its position is taken over: section 6.4 of docs/migration.md."
    )
    for each in flows:
        if ConnectorKind.SOURCE in each.kinds:
            yield from comment(f"{each.flow}: stop the connectors {', '.join(each.names)}", "  ")


def _questions(questions: Sequence[Question]) -> Iterator[str]:
    yield from comment("Import again with an answer to each of them, and --force to replace this file.")
    for question in questions:
        text, *options = question.lines()
        yield from comment(text)
        for option in options:
            yield from comment(option, "    ")
