"""Connect's single message transforms of a flow: their effective settings, and their problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror_lib.config.file import FileSettings, FlowSettings, Settings
from mirror_lib.config.model import Provenance
from mirror_lib.problems import Problem, Severity
from mirror_lib.transform.smt import SettingProblem, SmtChain, parse_settings

TRANSFORMS, PREDICATES = "transforms", "predicates"
CONVERTERS = ("key.converter", "value.converter", "header.converter")
#: Settings of transforms that MM2 reads only in a flow: no ConfigDef has these names (`connectorBaseConfig`).
FLOW_PREFIXES = (f"{TRANSFORMS}.", f"{PREDICATES}.", *(f"{converter}." for converter in CONVERTERS))

_BYTES = frozenset({"org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter"})


def is_connect_key(name: str) -> bool:
    """Return True if a key of a flow, without its prefix, belongs to Connect's transforms or converters."""
    return name in (TRANSFORMS, PREDICATES, *CONVERTERS) or name.startswith(FLOW_PREFIXES)


def connect_settings(settings: FlowSettings, file: FileSettings) -> dict[str, Provenance]:
    """Return the effective settings of the transforms and converters of a flow, by names without a prefix.

    A converter that the connector does not set is the worker's, with all its settings (`Worker.startTask` and
    `Plugins.newConverter`); the worker has the settings of the target cluster, overridden by those of the top level.
    """
    connector = settings.connector
    found = {name: setting for name, setting in connector.items() if name.startswith((TRANSFORMS, PREDICATES))}
    worker = {**file.cluster(settings.flow.target), **file.of_all_workers}
    for converter in CONVERTERS:
        found |= _under(connector if converter in connector else worker, converter)
    return {name: setting for name, setting in found.items() if is_connect_key(name)}


def parse_connect(texts: Mapping[str, str]) -> tuple[SmtChain | None, tuple[Problem, ...]]:
    """Return the chain, None if there is none or it cannot be used, and problems with the names as their keys."""
    parsed = parse_settings(texts)
    problems = tuple(_problem(each) for each in parsed.problems)
    if parsed.chain is None or not parsed.chain.stages:
        return None, problems
    return SmtChain(parsed.chain), problems


def converter_problems(settings: FlowSettings, effective: Settings, file: FileSettings) -> Iterator[Problem]:
    """Yield warnings for converters without effect here, and for converter settings that MM2 does not pass to the
    connector.
    """
    has_transforms = TRANSFORMS in effective and effective[TRANSFORMS].value.strip()
    for converter in CONVERTERS:
        setting = effective.get(converter)
        if not has_transforms:
            if setting is not None and setting.value.strip() not in _BYTES:
                yield Problem.warning(
                    f"{setting.key}: it has no effect without transforms: record batches are copied unchanged", setting
                )
        elif converter in settings.connector:
            yield from _unused_converter_settings(settings, converter, file)


def _unused_converter_settings(settings: FlowSettings, converter: str, file: FileSettings) -> Iterator[Problem]:
    """Yield warnings for settings of the worker's converter, unused because the connector sets its own."""
    for before in ("", f"{settings.flow.target}."):
        for key, setting in file.under(f"{before}{converter}."):
            name = key.removeprefix(before)
            if name not in settings.connector:
                flow = settings.flow
                message = (
                    f"{key}: it has no effect on flow {flow}: its {converter} is set on the connector, not on the "
                    "worker"
                )
                yield Problem.warning(message, setting, f"write {flow}.{name}")


def _under(settings: Settings, prefix: str) -> Mapping[str, Provenance]:
    return {name: setting for name, setting in settings.items() if name.startswith(prefix)}


def _problem(found: SettingProblem) -> Problem:
    return Problem(
        severity=Severity.WARNING if found.warning else Severity.ERROR,
        message=f"{found.key}: {found.message}",
        key=found.key,
        suggestion=found.action or None,
    )
