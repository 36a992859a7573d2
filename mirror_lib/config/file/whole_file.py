"""Problems that concern no single line: missing settings, contradictions, unintended effects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mirror_lib.config.file.comments import COMMENT_TODO, without_comment
from mirror_lib.config.file.derive import OLD_NAMES, FileSettings, FlowSettings, Settings
from mirror_lib.config.file.keys import ARROW, written_pairs
from mirror_lib.config.file.placeholders import placeholder_in
from mirror_lib.config.model import Problem, Provenance, Severity
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME
from mirror_lib.config.settings.sync_keys import CONFIGS_ALWAYS, CONFIGS_DEFAULT, CONFIGS_NEVER, CONFIGS_OVERRIDE
from mirror_lib.former_names import SETTINGS as FORMER_SETTINGS
from mirror_lib.outside_limits import CONFIGURATION_CLUSTERS
from mirror_lib.topology.bounded_pattern import SlowPatternError
from mirror_lib.topology.filters import CONFIG_PROPERTIES_EXCLUDE
from mirror_lib.topology.java_regex import compile_java, compile_list, compile_replacement
from mirror_lib.topology.java_types import parse_list, parse_raw_boolean
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import IDENTITY_CLASS, SOURCE_ALIAS, TARGET_ALIAS, keeps_names

_SEPARATOR = "replication.policy.separator"
_RENAME_REGEX = "mirror.topics.rename.regex"
_REPLACEMENT = "mirror.topics.rename.replacement"
#: Of MM2's default exclusions, the configs that protect the target's records.
_SAFETY = ("min.insync.replicas", "unclean.leader.election.enable")
#: A config that one of these settings names was set on purpose.
_CONFIG_RULES = (CONFIGS_ALWAYS, CONFIGS_DEFAULT, CONFIGS_NEVER, CONFIGS_OVERRIDE)


_NOT_IN_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")


def cluster_problems(file: FileSettings, clusters: Sequence[str], flows: Sequence[FlowId]) -> Iterator[Problem]:
    """Yield problems of `clusters` and of the connections."""
    setting = file.get("clusters")
    if setting is None:
        yield Problem.error("clusters is missing", suggestion="set the aliases, such as clusters = primary, backup")
        return
    if len(clusters) < 2:
        yield Problem.error("clusters must contain at least two aliases", setting)
    named = Counter(parse_list(setting.value))
    if len(named) > CONFIGURATION_CLUSTERS:
        yield Problem.error(f"clusters has more than {CONFIGURATION_CLUSTERS} aliases", setting, "use several files")
        return
    for alias, times in named.items():
        if alias and times > 1:
            yield Problem.warning(f"clusters contains {alias} {times} times", setting)
        if not _is_alias(alias):
            todo = COMMENT_TODO if without_comment(alias) != alias else None
            yield Problem.error(f"the alias {alias!r} must not contain spaces or {ARROW}", setting, todo)
    used = {alias for flow in flows for alias in (flow.source, flow.target)}
    sources = {flow.source for flow in flows}
    for alias in clusters:
        # As a target alone it need not be a part of a name (Kafka's `DedicatedMirrorIntegrationTest`).
        if alias in sources and _is_alias(alias) and _NOT_IN_TOPICS.search(alias):
            left = placeholder_in("clusters", alias, is_invalid=True)
            yield Problem.error(
                f"the alias {alias!r} is part of topic names such as mm2-offsets.{alias}.internal: only ASCII letters, "
                "digits, '.', '_' and '-' are allowed there",
                setting,
                f"write the alias instead of {left}" if left else None,
            )
        if alias in used and _is_alias(alias) and not file.cluster(alias).get("bootstrap.servers"):
            yield Problem(
                severity=Severity.ERROR,
                message=f"cluster {alias} has no bootstrap.servers",
                key=f"{alias}.bootstrap.servers",
                suggestion=f"set {alias}.bootstrap.servers = host:9092",
            )


def _is_alias(text: str) -> bool:
    return ARROW not in text and not any(character.isspace() for character in text)


def selection_problems(file: Settings, clusters: Sequence[str], flows: Sequence[FlowId]) -> Iterator[Problem]:
    """Yield problems of the selection of flows."""
    if len(clusters) > 1 and not flows:
        yield Problem.error(
            "no flow runs", suggestion="set SOURCE->TARGET.enabled = true for at least one pair of clusters"
        )
    top = file.get("enabled")
    if top is not None and parse_raw_boolean(top.value):
        yield Problem.warning(
            f"enabled at the top level enables all {len(flows)} flows", top, "set SOURCE->TARGET.enabled for each"
        )
    for flow in written_pairs(file, clusters):
        for name in ("enabled", "emit.heartbeats.enabled"):
            setting = file.get(f"{flow}.{name}")
            if setting is not None:
                yield from _raw_boolean_problems(setting)


def _raw_boolean_problems(setting: Provenance) -> Iterator[Problem]:
    written = setting.value if setting.written is None else setting.written
    if parse_raw_boolean(setting.value.strip()) and not parse_raw_boolean(written):
        reason = "a variable" if setting.written is not None else "a trailing space"
        yield Problem.warning(
            f"MM2 reads {setting.key} literally when it selects its flows: {reason} makes it false there",
            setting,
            "write true only",
        )


def provider_problems(file: Settings) -> Iterator[Problem]:
    """Yield provider settings of names that `config.providers` does not list."""
    named = set(parse_list(file["config.providers"].value)) if "config.providers" in file else set()
    for key, setting in file.items():
        if key.startswith("config.providers."):
            name = key.split(".")[2]
            if name not in named:
                yield Problem.warning(f"{key}: config.providers does not contain {name}", setting, f"add {name} to it")


def flow_problems(settings: FlowSettings, file: FileSettings) -> Iterator[Problem]:
    """Yield problems of the effective settings of one flow."""
    if _is_true(settings, "enabled"):
        yield from _alias_problems(settings)
    yield from _old_name_problems(settings)
    yield from _layer_problems(settings, file)
    if _is_true(settings, "enabled"):
        yield from _contradictions(settings)


def _alias_problems(settings: FlowSettings) -> Iterator[Problem]:
    setting = settings.connector.get(_SEPARATOR)
    separator = "." if setting is None else setting.value
    yield from _other_aliases(settings, separator)
    policy = settings.connector.get("replication.policy.class")
    if policy is not None and keeps_names(policy.value.strip()):
        yield from _identity_like(policy)
        return
    alias = _alias(settings, SOURCE_ALIAS, settings.flow.source)
    if not separator:
        yield _no_separator(settings.flow, alias, _alias(settings, TARGET_ALIAS, settings.flow.target), setting)
    elif separator in alias:
        yield Problem.warning(
            f"the alias {alias} contains the separator {separator!r}: remote topics of this cluster are not "
            "recognized, so loops are not prevented",
            setting,
            "use another alias or another replication.policy.separator",
        )


def _alias(settings: FlowSettings, name: str, default: str) -> str:
    setting = settings.connector.get(name)
    return default if setting is None else setting.value.strip()


def _other_aliases(settings: FlowSettings, separator: str) -> Iterator[Problem]:
    """Yield a warning about an alias setting of the flow: it looks cosmetic but renames every topic."""
    flow = settings.flow
    for name, usual, named in (
        (
            SOURCE_ALIAS,
            flow.source,
            "remote topics, positions and checkpoints of flow {flow} use the alias {alias!r}",
        ),
        (TARGET_ALIAS, flow.target, "offset-syncs and heartbeats of flow {flow} use the alias {alias!r}"),
    ):
        alias = _alias(settings, name, usual)
        setting = settings.connector.get(name)
        if setting is None or alias == usual or not (alias or separator):
            # Neither alias nor separator is a separate case, see `_no_separator`.
            continue
        example = f" (<topic> becomes {alias}{separator}<topic> by the default policy)" if name == SOURCE_ALIAS else ""
        yield Problem.warning(
            f"{setting.key}: {named.format(flow=flow, alias=alias)} instead of {usual!r}, as with MM2{example}",
            setting,
            f"keep the line if MM2 has run with it; for a new flow delete it, or use {alias or usual} in clusters",
        )


def _identity_like(policy: Provenance) -> Iterator[Problem]:
    name = policy.value.strip()
    if name != IDENTITY_CLASS:
        yield Problem.warning(
            f"{policy.key}: {name} keeps topic names and is treated as {IDENTITY_CLASS}, except that heartbeats "
            "topics are named <source>.heartbeats on the target, where that class mixes them",
            policy,
            f"write {IDENTITY_CLASS}, which MM2 supports since 3.0",
        )


def _no_separator(flow: FlowId, source: str, target: str, setting: Provenance | None) -> Problem:
    """Return a warning about the topic names; only loops are rejected, which needs all flows of the file."""
    if not source:
        return Problem.warning(
            f"flow {flow}: with neither alias nor separator topics keep their names, as in MM2; heartbeats of the "
            "source are not copied, because they would mix with the target's own",
            setting,
            f"for a new flow write replication.policy.class = {IDENTITY_CLASS} and delete both lines; keep them if "
            "MM2 has run with them, because they name its internal topics",
        )
    exclusion = f", and topics whose names contain {target!r} are not copied" if len(target) == 1 else ""
    return Problem.warning(
        f"flow {flow}: without a separator <topic> becomes {source}<topic>, as in MM2, which then does not "
        f"recognize remote topics{exclusion}",
        setting,
        "keep the line if MM2 has run with it; for a new flow set another replication.policy.separator",
    )


def _old_name_problems(settings: FlowSettings) -> Iterator[Problem]:
    for new, old in (*OLD_NAMES.items(), *((new, old) for old, new in FORMER_SETTINGS.items())):
        before, now = settings.connector.get(old), settings.connector.get(new)
        if before is not None and now is not None and now.key != before.key:
            yield Problem.warning(f"{before.key} has no effect on flow {settings.flow}: {now.key} is set too", before)


def _layer_problems(settings: FlowSettings, file: FileSettings) -> Iterator[Problem]:
    """Yield client settings of a flow that those of a cluster override, which is unexpected (mm2
    `MirrorConnectorConfig`).
    """
    flow = settings.flow
    for kind, clients in _CLIENTS_OF_KIND.items():
        prefix = f"{flow}.{kind}."
        for key, setting in file.under(prefix):
            name = key.removeprefix(prefix)
            if name.startswith("override.") or f"{kind}.{name}" in MM2_BY_NAME:
                continue
            effective = [found for client in clients if (found := settings.clients[client].get(name)) is not None]
            winner = next((found for found in effective if found.key != key), None)
            if winner is not None and winner.key is not None and all(found.key != key for found in effective):
                yield Problem.warning(
                    f"{key} has no effect: {winner.key} overrides it", setting, f"write {flow}.source.{kind}.{name}"
                )


_CLIENTS_OF_KIND = {
    "consumer": ("data_consumer", "offset_syncs_consumer"),
    "admin": ("source_admin", "target_admin"),
    "producer": ("offset_syncs_producer",),
}


def _contradictions(settings: FlowSettings) -> Iterator[Problem]:
    connector, flow = settings.connector, settings.flow
    regex, replacement = connector.get(_RENAME_REGEX), connector.get(_REPLACEMENT)
    if (regex is None) != (replacement is None):
        given, missing = (_RENAME_REGEX, _REPLACEMENT) if replacement is None else (_REPLACEMENT, _RENAME_REGEX)
        yield Problem.error(
            f"flow {flow} has {given} but no {missing}", regex or replacement, f"set {flow}.{missing} too"
        )
    elif regex is not None and replacement is not None:
        yield from _replacement_problems(regex, replacement)
    yield from _weakened_configs(settings)
    if _is_true(settings, "sync.group.offsets.enabled") and _is_false(settings, "emit.checkpoints.enabled"):
        yield Problem.warning(
            f"flow {flow} synchronizes no group offsets, because emit.checkpoints.enabled is false",
            connector["sync.group.offsets.enabled"],
        )
    if _is_false(settings, "emit.offset-syncs.enabled") and not _is_false(settings, "emit.checkpoints.enabled"):
        yield Problem.warning(
            f"flow {flow} emits no checkpoints, because emit.offset-syncs.enabled is false (MM2's checkpoint "
            "connector does not start then)",
            connector["emit.offset-syncs.enabled"],
            f"set {flow}.emit.checkpoints.enabled = false too",
        )


def _weakened_configs(settings: FlowSettings) -> Iterator[Problem]:
    """Yield a warning if the file's list replaces the default one: target topics then get these configs from the
    source.
    """
    own = settings.connector.get(CONFIG_PROPERTIES_EXCLUDE)
    if own is None or not _is_true(settings, "enabled"):
        return
    decided = [rule.value for name in _CONFIG_RULES if (rule := settings.connector.get(name)) is not None]
    named = {each.split("=", 1)[0].strip() for text in decided for each in parse_list(text)}
    try:
        excluded = compile_list([each for each in parse_list(own.value) if each])
        lowered = [name for name in _SAFETY if name not in named and (excluded is None or not excluded.fullmatch(name))]
    except ValueError:
        # Reported at the line of the regex.
        return
    except SlowPatternError as error:
        yield Problem.error(f"{own.key}: {error.what}", own, error.action)
        return
    if lowered:
        yield Problem.warning(
            f"{own.key} replaces the default list, so {' and '.join(lowered)} of the source's topics "
            f"{'is' if len(lowered) == 1 else 'are'} set on the target and may weaken it",
            own,
            f"add {','.join(lowered)}",
        )


def _replacement_problems(regex: Provenance, replacement: Provenance) -> Iterator[Problem]:
    try:
        pattern = compile_java(regex.value.strip())
    except ValueError:
        # Reported at the line of the regex.
        return
    try:
        compile_replacement(replacement.value.strip(), pattern)
    except ValueError as error:
        yield Problem.error(str(error), replacement)


def _is_true(settings: FlowSettings, name: str) -> bool:
    return name in settings.connector and settings.connector[name].value.strip().lower() == "true"


def _is_false(settings: FlowSettings, name: str) -> bool:
    return name in settings.connector and settings.connector[name].value.strip().lower() == "false"


def nothing_enabled(flows: Iterable[FlowSettings], selected: Sequence[FlowId]) -> Iterator[Problem]:
    """Yield a warning about a file whose flows only emit heartbeats: allowed, but rarely intended.

    Args:
        flows: those that the file names.
        selected: all pairs that MM2 would run.
    """
    if selected and not any(_is_true(settings, "enabled") for settings in flows):
        first = selected[0]
        yield Problem.warning("no flow is enabled, so no topic is replicated", None, f"set {first}.enabled = true")
