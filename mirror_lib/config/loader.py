"""Read a properties file: its flows as typed values, its problems, and the origin of every value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mirror_lib.config.data_plane import UNCHANGED, FlowChains
from mirror_lib.config.file.ambiguous_names import unclear_names
from mirror_lib.config.file.check import hidden_cut_keys, key_problems
from mirror_lib.config.file.comments import without_comment
from mirror_lib.config.file.derive import (
    ENABLED,
    TOP_LEVEL,
    FileSettings,
    FlowSettings,
    clusters,
    flow_settings,
    named_flows,
    pairs_of_each_cluster,
    selected_flows,
    top_level,
)
from mirror_lib.config.file.other_formats import foreign_format
from mirror_lib.config.file.problems import InvalidConfigurationError, describe, in_order
from mirror_lib.config.file.properties import Entry, parse_properties
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.file.typed import flow_config
from mirror_lib.config.file.whole_file import (
    cluster_problems,
    flow_problems,
    nothing_enabled,
    provider_problems,
    selection_problems,
)
from mirror_lib.config.first_start import NO_RESET, OFFSET_RESET, first_starts
from mirror_lib.config.gc_pause import collections_paused
from mirror_lib.config.model import FlowConfig, MirrorConfig, Problem, Provenance, Severity, UnnamedPairs
from mirror_lib.config.named_exclusions import about_excluded, about_excluded_groups
from mirror_lib.config.same_offsets import unfit_for_same_offsets
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.lookup_context import looking_only, surroundings
from mirror_lib.config.secrets.providers import ConfigProvider, Resolver, files_read, make_providers
from mirror_lib.config.security.check import security_problems
from mirror_lib.config.settings.definition import Definition
from mirror_lib.config.settings.feature_keys import flow_keys
from mirror_lib.config.settings.mirror_keys import LEDGER_URL
from mirror_lib.config.settings.mm2_keys import MM2_FLOW
from mirror_lib.config.topology import flow_topology
from mirror_lib.config.transforms_reader import transform_settings, transforms_reader
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.limited_files import read_beginning
from mirror_lib.outside_limits import CONFIGURATION_BYTES, PATTERN_SECONDS_A_FILE
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.pattern_time import limited_pattern_time

__all__ = [
    "Examined",
    "InvalidConfigurationError",
    "ReadablePart",
    "check",
    "content",
    "describe",
    "enabled_flow",
    "examine",
    "explain",
    "explain_with_transforms",
    "load",
    "load_flow",
    "load_readable",
]
_TOPICS, _GROUPS = "topics", "groups"


class ReadablePart(NamedTuple):
    """The usable part of a file, and its errors."""

    config: MirrorConfig
    #: None for a file without errors.
    broken: InvalidConfigurationError | None

    @property
    def sources(self) -> tuple[FileStamp, ...]:
        """The files that it was read from, see `MirrorConfig`."""
        return self.config.sources if self.broken is None else self.broken.sources


def load(path: Path | str) -> MirrorConfig:
    """Return the typed configuration of a file, including its warnings.

    Raises:
        InvalidConfigurationError: the file cannot be read or has errors; it names all of them.
    """
    read = _read(path)
    if read.has_errors:
        raise InvalidConfigurationError(str(path), read.problems, read.sources)
    return _config(path, read)


def load_readable(path: Path | str) -> ReadablePart:
    """Return the usable part of a file with errors: its flows without the invalid lines.

    For callers that show the flows and copy nothing: a run rejects such a file as a whole.

    Raises:
        InvalidConfigurationError: the file cannot be read.
    """
    read = _read(path)
    if not read.has_errors:
        return ReadablePart(_config(path, read), None)
    broken = InvalidConfigurationError(str(path), read.problems, read.sources)
    rest = _read(path, without=broken.keys_in_error, in_spite=True)
    return ReadablePart(_config(path, rest), broken)


def _config(path: Path | str, read: _Read) -> MirrorConfig:
    ledger = read.file.get(LEDGER_URL)
    return MirrorConfig(
        path=str(path),
        clusters=clusters(read.file),
        flows=tuple(read.typed),
        unnamed=UnnamedPairs(read.unnamed, partial(_unnamed_pair, read.file)),
        ledger_url=None if ledger is None else ledger.value.strip() or None,
        sources=read.sources,
        warnings=read.problems,
    )


def load_flow(path: Path | str, flow: str) -> tuple[MirrorConfig, FlowConfig]:
    """Return the configuration of a file and one of its enabled flows, given as `A->B`.

    Raises:
        InvalidConfigurationError: the file cannot be used.
        ConfigurationError: the file has no such flow, or the flow is not enabled; it names those that are.
    """
    config = load(path)
    return config, enabled_flow(config, flow)


def enabled_flow(config: MirrorConfig, flow: str) -> FlowConfig:
    """Return one of the enabled flows of a file, given as `A->B`.

    Raises:
        ConfigurationError: as `load_flow`.
    """
    enabled = ", ".join(str(each.flow) for each in config.enabled_flows) or "none"
    try:
        found = config.flow(flow)
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"{config.path} has no flow {flow!r}.", action=f"Its enabled flows are: {enabled}."
        ) from error
    if not found.enabled:
        raise ConfigurationError(
            f"flow {flow} of {config.path} is not enabled.",
            action=f"Set {flow}.enabled=true; enabled flows are: {enabled}.",
        )
    return found


class Examined(NamedTuple):
    """Every problem of a file, and what can be used of it although it has errors."""

    problems: tuple[Problem, ...]
    #: Without invalid lines, and without the flows whose names or topics they decide.
    config: MirrorConfig
    #: Those of its enabled flows that have no invalid setting.
    sound: tuple[FlowConfig, ...]


def check(path: Path | str, data: bytes | None = None) -> tuple[Problem, ...]:
    """Return every problem of a file, in the order of its lines; see `examine`."""
    return examine(path, data).problems


def examine(path: Path | str, data: bytes | None = None) -> Examined:
    """Return every problem of a file in the order of its lines, also those of flows without their invalid lines.

    Args:
        path: of the file.
        data: its content, if it is not to be read.

    Raises:
        InvalidConfigurationError: the file cannot be read.
    """
    with looking_only():
        read = _read(path, data)
        if not read.has_errors:
            config = _config(path, read)
            return Examined(read.problems, config, config.enabled_flows)
        wrong = InvalidConfigurationError(str(path), read.problems).keys_in_error
        rest = _read(path, data, without=wrong, in_spite=True)
    # Without an invalid line, other pairs may be selected.
    certain = {each.flow for each in read.flows if not any(map(_decides_names, _invalid(each, wrong)))}
    unsound = {each.flow for each in read.flows if any(_invalid(each, wrong))}
    config = _config(path, rest)
    config = config.model_copy(update={"flows": tuple(each for each in config.flows if each.flow in certain)})
    late = [each for flow, found in rest.late.items() if flow in certain for each in found]
    return Examined(
        in_order([*read.problems, *late]),
        config,
        tuple(each for each in config.enabled_flows if each.flow not in unsound),
    )


def _invalid(settings: FlowSettings, wrong: Collection[str]) -> Iterator[str]:
    """Yield the names of a flow's settings that invalid lines make."""
    for layer in (settings.connector, settings.worker, *settings.clients.values()):
        yield from (name for name, setting in layer.items() if setting.key in wrong)


def _decides_names(name: str) -> bool:
    return (
        name == ENABLED or name.endswith("cluster.alias") or name.startswith((_TOPICS, "replication.p", "mirror.top"))
    )


def explain(path: Path | str, flow: FlowId | str, data: bytes | None = None) -> dict[str, Provenance]:
    """Return every effective setting of a flow with its origin; those of its clients are named `<client>/<property>`.

    It also works for files with errors. Values are not masked: see `masking.shown` before printing them.

    Args:
        path: of the file.
        flow: as `A->B`.
        data: the file's content, if it is not to be read.

    Raises:
        InvalidConfigurationError: the file cannot be read.
        ConfigurationError: the file has no such flow.
    """
    return explain_with_transforms(path, flow, data)[0]


def explain_with_transforms(
    path: Path | str, flow: FlowId | str, data: bytes | None = None
) -> tuple[dict[str, Provenance], FlowChains]:
    """Like `explain`, with the transforms of the flow; those with errors are skipped.

    Raises:
        InvalidConfigurationError: as `explain`.
        ConfigurationError: as `explain`.
    """
    with looking_only():
        read = _read(path, data)
    for settings, transforms in zip(read.flows, read.transforms, strict=True):
        if str(settings.flow) == str(flow):
            return _explain(settings, read.file), transforms
    for name in read.unnamed:
        if str(name) == str(flow):
            return _explain(flow_settings(read.file, name), read.file), UNCHANGED
    names = ", ".join(str(settings.flow) for settings in read.flows) or "none"
    raise ConfigurationError(f"{path} has no flow {str(flow)!r}.", action=f"Its flows are: {names}.")


@dataclass(frozen=True, slots=True)
class _Read:
    """A file with everything that was found out about it."""

    file: FileSettings
    #: The pairs that lines of the file enable or name.
    flows: tuple[FlowSettings, ...]
    #: The other pairs that MM2 would run.
    unnamed: frozenset[FlowId]
    #: One for each of the flows.
    transforms: tuple[FlowChains, ...]
    typed: tuple[FlowConfig, ...]
    problems: tuple[Problem, ...]
    #: Those of its typed flows, found last; also among `problems`.
    late: Mapping[FlowId, list[Problem]]
    sources: tuple[FileStamp, ...]

    @property
    def has_errors(self) -> bool:
        return _any_error(self.problems)


@collections_paused()
@limited_pattern_time(PATTERN_SECONDS_A_FILE)
def _read(
    path: Path | str, data: bytes | None = None, *, without: Collection[str] = (), in_spite: bool = False
) -> _Read:
    """Args:
    data: the content, if the file is not to be read.
    without: keys whose lines are taken for absent.
    in_spite: make typed flows also of a file with errors, as many as can be made.
    """
    stamp = FileStamp.of(Path(path))
    data = _content(path, stamp) if data is None else data
    other = foreign_format(data)
    if other is not None:
        return _Read(FileSettings(), (), frozenset(), (), (), (other,), {}, (stamp,))
    parsed = parse_properties(data)
    problems = list(parsed.problems)
    effective = parsed.effective
    entries = {key: entry for key, entry in effective.items() if key not in without}
    providers = _providers(entries, problems)
    file = top_level(_resolve(entries, providers, problems))
    aliases = clusters(file)
    selected = selected_flows(file)
    named = named_flows(file, selected)
    flows = tuple(flow_settings(file, flow) for flow in named)
    unnamed = frozenset(selected).difference(named)
    others = pairs_of_each_cluster(pair for pair in selected if pair in unnamed)
    problems += key_problems(file, aliases, (*named, *others))
    problems += hidden_cut_keys((each for each in parsed.entries if effective[each.key] is not each), aliases)
    problems += cluster_problems(file, aliases, selected)
    problems += selection_problems(file, aliases, selected)
    problems += provider_problems(file)
    for settings in flows:
        problems += flow_problems(settings, file)
    problems += security_problems(flows)
    problems += nothing_enabled(flows, selected)
    reader = transforms_reader(file, Path(path).parent)
    transforms = tuple([reader.read(settings) for settings in flows])
    problems += reader.problems()
    typed: list[FlowConfig] = []
    late: dict[FlowId, list[Problem]] = {settings.flow: [] for settings in flows}
    if in_spite or not _any_error(problems):
        typed += _build_flows(file, flows, transforms, late)
        problems += (each for found in late.values() for each in found)
        problems += _unclear_names(typed, flows)
    sources = (stamp, *files_read(providers.values()), *reader.sources)
    return _Read(file, flows, unnamed, transforms, tuple(typed), in_order(problems), late, sources)


def content(path: Path | str) -> bytes:
    """Return the content of a file, as far as one is read.

    Raises:
        InvalidConfigurationError: the file cannot be read.
    """
    return _content(path, FileStamp.of(Path(path)))


def _content(path: Path | str, stamp: FileStamp) -> bytes:
    try:
        # One byte more than the limit shows that a file is too large.
        return read_beginning(Path(path), CONFIGURATION_BYTES + 1)
    except OSError as error:
        problem = Problem.error(f"the file cannot be read: {error.strerror}")
        raise InvalidConfigurationError(str(path), (problem,), (stamp,)) from error


def _unnamed_pair(file: FileSettings, name: FlowId) -> FlowConfig:
    """Return the typed settings of a pair that no line names; it copies nothing, so it has no transforms."""
    return _with_ended_opposite(flow_config(flow_settings(file, name)), file)


def _providers(entries: Mapping[str, Entry], problems: list[Problem]) -> Mapping[str, ConfigProvider]:
    providers, wrong = make_providers({key: entry.value for key, entry in entries.items()})
    for key, message in wrong.items():
        line = entries[key].line if key in entries else None
        problems.append(Problem(severity=Severity.ERROR, message=message, key=key, line=line))
    return providers


def _resolve(
    entries: Mapping[str, Entry], providers: Mapping[str, ConfigProvider], problems: list[Problem]
) -> Iterator[Provenance]:
    """Return the assignments with variables replaced; variables that cannot be are added to the problems."""
    resolver = Resolver(providers)
    on_secret = surroundings().on_secret
    for entry in entries.values():
        result = resolver.resolve(entry.value, entry.key)
        problems += [Problem.error(f"{entry.key}: {failure}", entry) for failure in result.failures]
        problems += [
            Problem.warning(f"{entry.key}: no provider has a value for {variable}: it is not replaced", entry)
            for variable in result.unknown
        ]
        problems += [Problem.error(f"{entry.key}: {refusal}", entry) for refusal in result.refusals]
        if on_secret is not None and (is_secret(entry.key) or entry.key == LEDGER_URL):
            on_secret(entry.key, result.text, result.given)
        yield Provenance(
            value=result.text,
            key=entry.key,
            line=entry.line,
            origin=TOP_LEVEL,
            written=entry.value if result.text != entry.value else None,
            later=result.later,
        )


def _build_flows(
    file: FileSettings,
    flows: tuple[FlowSettings, ...],
    transforms: tuple[FlowChains, ...],
    found: Mapping[FlowId, list[Problem]],
) -> Iterator[FlowConfig]:
    for settings, of_flow in zip(flows, transforms, strict=True):
        problems = found[settings.flow]
        try:
            typed = _with_ended_opposite(flow_config(settings, of_flow), file)
            if typed.enabled:
                # Invalid classes and regexes are found now rather than by the first run.
                flow_topology(typed)
                problems += _exclusions(settings, typed)
                problems += _first_start_problems(settings, typed)
                problems += [Problem.error(f"flow {typed.flow}: {text}") for text in unfit_for_same_offsets(typed)]
        except ValueError as error:
            problems.append(Problem.error(f"flow {settings.flow}: {error}"))
        except MirrorError as error:
            problems.append(_topology_problem(settings, error))
        else:
            yield typed


def _unclear_names(typed: list[FlowConfig], flows: tuple[FlowSettings, ...]) -> list[Problem]:
    try:
        return list(unclear_names(typed, {settings.flow: settings for settings in flows}))
    except MirrorError:
        # Reported where the flow's own names are checked.
        return []


def _with_ended_opposite(flow: FlowConfig, file: FileSettings) -> FlowConfig:
    """Note whether the file says that the opposite flow does not run; it may say nothing about it."""
    written = file.get(f"{flow.flow.opposite}.enabled")
    is_ended = written is not None and without_comment(written.value).strip().lower() == "false"
    return flow.model_copy(update={"opposite_ended": True}) if is_ended else flow


def _first_start_problems(settings: FlowSettings, flow: FlowConfig) -> Iterator[Problem]:
    try:
        first_starts(flow)
    except ConfigurationError as error:
        setting = settings.clients["data_consumer"][OFFSET_RESET]
        todo = error.action[:1].lower() + error.action[1:].rstrip(".")
        yield Problem.error(error.what, setting, todo)
        return
    reset = settings.clients["data_consumer"].get(OFFSET_RESET)
    if reset is not None and reset.value.strip() == NO_RESET and flow.first_start is None:
        yield Problem.warning(
            "with none, tasks of MM2 copy nothing while one of their partitions has no position; here such "
            "partitions are copied from their earliest offset",
            reset,
            "write earliest or latest, or set mirror.first.start; records that the source deletes before "
            "they are copied stop a partition regardless of this setting",
        )


def _exclusions(settings: FlowSettings, flow: FlowConfig) -> Iterator[Problem]:
    setting = settings.connector.get(_TOPICS)
    for sentence in about_excluded(flow):
        yield Problem.warning(sentence, setting)
    for sentence in about_excluded_groups(flow):
        yield Problem.warning(sentence, settings.connector.get(_GROUPS))


def _topology_problem(settings: FlowSettings, error: MirrorError) -> Problem:
    return Problem.error(f"flow {settings.flow}: {error.what}", suggestion=error.action or None)


def _explain(settings: FlowSettings, file: FileSettings) -> dict[str, Provenance]:
    explained: dict[str, Provenance] = {}
    for definition in (*MM2_FLOW, *flow_keys()):
        setting = settings.connector.get(definition.name) or _default(definition)
        if setting is not None:
            explained[definition.name] = setting
    for name, setting in settings.connector.items():
        if name.startswith("replication.policy"):
            explained.setdefault(name, setting)
    explained |= transform_settings(settings, file)
    explained |= settings.worker
    for client, properties in settings.clients.items():
        explained |= {f"{client.replace('_', '-')}/{name}": properties[name] for name in sorted(properties)}
    return explained


def _default(definition: Definition) -> Provenance | None:
    # Settings that are not applied are shown only if they are set.
    if definition.default is None or definition.instead:
        return None
    return Provenance(value=definition.default)


def _any_error(problems: tuple[Problem, ...] | list[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
