"""`mirror config import` of MirrorMaker 2's connectors: write the file, and report on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mirror_lib.cli import Output
from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.config import loader as load
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.model import Problem, Severity
from mirror_lib.features.importers.commands.imported import imported_settings, problems_of, say, write_or_print
from mirror_lib.features.importers.connectors import ImportedConnectors, import_connectors
from mirror_lib.features.importers.model import ConnectCluster
from mirror_lib.features.importers.questions import Answers

_NEEDS_A_PERSON, _HAS_ERRORS = 3, 2


def import_to_file(
    clusters: Sequence[ConnectCluster],
    answers: Answers,
    secrets_folder: str,
    path: Path | None,
    output: Output,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Convert connectors, write or print the file, and report the result for each setting.

    Raises:
        ConfigurationError: a connector or an answer cannot be used, or the file cannot be written.
    """
    imported = import_connectors(clusters, answers, jaas_options=_jaas_options, secrets_folder=secrets_folder)
    write_or_print(imported.text, path, force=force, as_json=as_json)
    problems = _problems(imported)
    if any(problem.severity is Severity.ERROR for problem in problems):
        output.exit_code = _HAS_ERRORS
    if imported.questions:
        output.exit_code = _NEEDS_A_PERSON
    output.document(
        {
            "written": None if path is None else str(path),
            **imported_settings(imported.placed, imported.listed),
            "notes": list(imported.notes),
            "problems": [load.describe(problem) for problem in problems],
            "questions": [
                {"id": each.id, "text": each.text, "answers": [list(choice) for choice in each.choices]}
                for each in imported.questions
            ],
        }
    )
    if not as_json:
        say(_lines(imported, problems))


def _lines(imported: ImportedConnectors, problems: Sequence[Problem]) -> list[str]:
    lines = [f"{len(imported.placed)} settings imported, {len(imported.listed)} kept as comments with reasons."]
    lines += [f"Note: {note}" for note in imported.notes]
    lines += [load.describe(problem) for problem in problems]
    if imported.questions:
        lines.append(f"Open questions: {len(imported.questions)}. No flow is enabled until each has an answer.")
    for question in imported.questions:
        text, *options = question.lines()
        lines += [f"- {text}", *(f"    {option}" for option in options)]
    return lines


def _problems(imported: ImportedConnectors) -> tuple[Problem, ...]:
    """Return the problems of `mirror config check`; values of variables are checked where they exist, rarely here."""
    entries = parse_properties(imported.text.encode("ascii")).effective
    with_variables = {key for key, entry in entries.items() if "${" in entry.value}
    with_variables |= {key for key in entries if key.startswith("config.providers")}
    undecided = with_variables | {question.id for question in imported.questions}
    # Flows with open questions are not enabled; this is not repeated.
    as_meant = ("no flow is enabled", "no flow runs") if imported.questions else ()
    return tuple(
        each
        for each in problems_of(imported.text)
        if each.key not in undecided and not each.message.startswith(as_meant)
    )


def _jaas_options(text: str) -> Mapping[str, str]:
    return parse_jaas(text).options
