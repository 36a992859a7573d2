"""Connect's single message transforms of a flow: their chain, and their problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror_lib.config.file.derive import FileSettings, FlowSettings, Settings
from mirror_lib.config.settings.keys_of_transforms import CONNECT_TRANSFORMS, CONVERTERS
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.model import SettingProblem
from mirror_lib.features.transforms.smt.settings import parse_settings
from mirror_lib.problems import Problem, Severity

_BYTES = frozenset({"org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter"})


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
    has_transforms = CONNECT_TRANSFORMS in effective and effective[CONNECT_TRANSFORMS].value.strip()
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


def _problem(found: SettingProblem) -> Problem:
    return Problem(
        severity=Severity.WARNING if found.warning else Severity.ERROR,
        message=f"{found.key}: {found.message}",
        key=found.key,
        suggestion=found.action or None,
    )
