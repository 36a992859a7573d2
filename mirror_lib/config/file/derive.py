"""The effective settings of a flow: which text applies to every key, and its origin. Pure; nothing is typed.

The rules are those of `MirrorMakerConfig.connectorBaseConfig`, `clusterProps` and `workerConfig`, of
`MirrorConnectorConfig` and `MirrorSourceConfig` for the clients inside the connectors, and of Connect's `Worker` for
the producer that writes the data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mirror_lib.config.file.comments import without_comment
from mirror_lib.config.file.keys import written_pairs
from mirror_lib.config.model import Provenance
from mirror_lib.config.settings.definition import Scope
from mirror_lib.config.settings.feature_keys import feature_setting
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.config.settings.mirror_keys import FLOW_KEYS
from mirror_lib.config.settings.mm2_keys import MM2_FLOW, WORKER
from mirror_lib.former_names import SETTINGS as FORMER_SETTINGS
from mirror_lib.outside_limits import CONFIGURATION_CLUSTERS
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.java_types import parse_list, parse_raw_boolean
from mirror_lib.topology.names import FlowId

Settings = Mapping[str, Provenance]

TOP_LEVEL = "top level"
ENABLED, FALSE = "enabled", "false"
_HEARTBEATS = "emit.heartbeats.enabled"

#: Names of 2.4 to 2.6 that later versions keep as aliases: new name -> old name.
OLD_NAMES = {
    "topics.exclude": "topics.blacklist",
    "groups.exclude": "groups.blacklist",
    "config.properties.exclude": "config.properties.blacklist",
}

#: Names that MM2 copies from the top level into every flow: those in the ConfigDefs of its three connectors.
_TOP_LEVEL_NAMES = frozenset(
    [definition.name for definition in (*MM2_FLOW, *FLOW_KEYS) if definition.scope is Scope.FLOW]
    + [*OLD_NAMES.values(), *FORMER_SETTINGS]
    + [name for name in CLIENT_SET if name != "bootstrap.servers"]
)
_TOP_LEVEL_PREFIXES = ("config.providers", "replication.policy", "mirror.transform")
#: Top-level keys that override those of the target cluster (`MirrorMakerConfig.workerConfig`).
_WORKER_PREFIXES = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
)
_CLIENT_KINDS = ("producer", "consumer", "admin")
#: Settings of MM2 itself whose names begin like those of a client.
NOT_OF_A_CLIENT = frozenset({"consumer.poll.timeout.ms", "admin.timeout.ms"})
_CONSUMER_FORCED = {"enable.auto.commit": "false"}
_CONSUMER_DEFAULTS = {"auto.offset.reset": "earliest"}


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """All settings of one flow.

    `connector` has the settings of the flow, `worker` those of the Connect worker that MM2 would run for it, `clients`
    those of each client by its name in `FlowClients`.
    """

    flow: FlowId
    connector: Settings
    worker: Settings
    clients: Mapping[str, Settings]


class FileSettings(dict[str, Provenance]):
    """The assignments of a file by key, unresolved. Immutable.

    Every flow reads every part of its file: without this cache, a file of many flows takes time quadratic in their
    number.
    """

    def under(self, prefix: str) -> Iterator[tuple[str, Provenance]]:
        """The assignments whose keys begin with a prefix, in the order of the file."""
        found: list[str] = []
        for key in self._sorted_keys[bisect_left(self._sorted_keys, prefix) :]:
            if not key.startswith(prefix):
                break
            found.append(key)
        for key in sorted(found, key=self._places.__getitem__):
            yield key, self[key]

    def cluster(self, alias: str) -> Settings:
        """Return `cluster_settings`, cached."""
        if alias not in self._clusters:
            self._clusters[alias] = cluster_settings(self, alias)
        return self._clusters[alias]

    @cached_property
    def of_all_flows(self) -> Settings:
        """The settings that every flow takes from the top level."""
        return {
            name: setting
            for name, setting in self.items()
            if name in _TOP_LEVEL_NAMES or name.startswith(_TOP_LEVEL_PREFIXES) or feature_setting(name) is not None
        }

    @cached_property
    def of_all_workers(self) -> Settings:
        """The settings that every worker takes from the top level."""
        return {
            name: setting.model_copy(update={"origin": TOP_LEVEL})
            for name, setting in self.items()
            if name.startswith(_WORKER_PREFIXES)
        }

    @cached_property
    def _sorted_keys(self) -> list[str]:
        return sorted(self)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {key: place for place, key in enumerate(self)}

    @cached_property
    def _clusters(self) -> dict[str, Settings]:
        return {}


def top_level(file: Iterable[Provenance]) -> FileSettings:
    """Return the assignments of a file by key, unresolved."""
    return FileSettings((setting.key, setting) for setting in file if setting.key is not None)


def clusters(file: Settings) -> tuple[str, ...]:
    """Return the aliases in `clusters`, each once; of too many, which are an error, the first ones."""
    named = parse_list(file["clusters"].value) if "clusters" in file else ()
    return tuple(dict.fromkeys(alias for alias in named if alias))[:CONFIGURATION_CLUSTERS]


def selected_flows(file: Settings) -> tuple[FlowId, ...]:
    """Return the pairs of clusters that MM2 runs: enabled ones, and those that emit heartbeats.

    The texts are used as written, without replacing variables (`MirrorMakerConfig.clusterPairs`).
    """
    aliases = clusters(file)
    written = written_pairs(file, aliases)
    if not _emits_heartbeats(_text_as_written(file, _HEARTBEATS)):
        return tuple(pair for pair in written if _runs(file, pair))
    idle = {pair for pair in written if not _runs(file, pair)}
    pairs = (FlowId(source, target) for source in aliases for target in aliases if source != target)
    return tuple(pair for pair in pairs if pair not in idle)


def named_flows(file: Settings, selected: Sequence[FlowId]) -> tuple[FlowId, ...]:
    """Return the selected pairs that lines of the file name or enable.

    All others only emit heartbeats and differ by their clusters alone: a file of n clusters has up to n * (n - 1).
    """
    if "enabled" in file:
        # At the top level it may enable every pair.
        return tuple(selected)
    written = set(written_pairs(file, clusters(file)))
    return tuple(pair for pair in selected if pair in written)


def pairs_of_each_cluster(pairs: Iterable[FlowId]) -> tuple[FlowId, ...]:
    """Return pairs in which each cluster is the source once and the target once, of pairs that no line names.

    A setting of a cluster or of the top level applies to one of them if it applies to any: a client's settings come
    from one cluster.
    """
    found: dict[FlowId, None] = {}
    sources: set[str] = set()
    targets: set[str] = set()
    for pair in pairs:
        if pair.source not in sources or pair.target not in targets:
            found[pair] = None
            sources.add(pair.source)
            targets.add(pair.target)
    return tuple(found)


def _runs(file: Settings, pair: FlowId) -> bool:
    if parse_raw_boolean(_text_as_written(file, f"{pair}.enabled")):
        return True
    heartbeats = _text_as_written(file, f"{pair}.{_HEARTBEATS}")
    return _emits_heartbeats(_text_as_written(file, _HEARTBEATS) if heartbeats is None else heartbeats)


def _emits_heartbeats(text: str | None) -> bool:
    return text is None or parse_raw_boolean(text)


def _text_as_written(file: Settings, key: str) -> str | None:
    setting = file.get(key)
    if setting is None:
        return None
    return setting.value if setting.written is None else setting.written


def cluster_settings(file: FileSettings, cluster: str) -> dict[str, Provenance]:
    """Return a cluster's own keys, seeded with connection settings (`MirrorMakerConfig.clusterProps`)."""
    settings = _strip_prefix(file, f"{cluster}.", f"cluster {cluster}")
    own_connection = {name: settings[name] for name in CLIENT_SET if name in settings}
    for name, setting in own_connection.items():
        for kind in _CLIENT_KINDS:
            settings.setdefault(f"{kind}.{name}", setting)
    for name in CLIENT_SET:
        if name in file:
            for key in (*(f"{kind}.{name}" for kind in _CLIENT_KINDS), name):
                settings.setdefault(key, file[name])
    return settings


def flow_settings(file: FileSettings, flow: FlowId) -> FlowSettings:
    """Return the settings of one flow, of its worker and of its clients."""
    connector = _connector_settings(file, flow)
    worker = _worker_settings(file, flow)
    return FlowSettings(flow, connector, worker, dict(_clients(connector, file.cluster(flow.target))))


def _connector_settings(file: FileSettings, flow: FlowId) -> dict[str, Provenance]:
    settings = dict(file.of_all_flows)
    for side, cluster in (("source", flow.source), ("target", flow.target)):
        for name, setting in file.cluster(cluster).items():
            prefix = f"{side}." if name.startswith(_CLIENT_KINDS) else f"{side}.cluster."
            settings[prefix + name] = setting
    settings |= _strip_prefix(file, f"{flow}.", f"flow {flow}")
    enabled = settings.get(ENABLED)
    if enabled is not None and is_false_with_comment(enabled.value):
        settings[ENABLED] = enabled.model_copy(update={"value": FALSE})
    return _with_aliases(settings)


def is_false_with_comment(enabled: str) -> bool:
    """Return True for `false # passive`: not true for MM2, whose connectors refuse it, so that it copies nothing."""
    stated = without_comment(enabled)
    return stated != enabled and stated.strip().lower() == FALSE


def is_pattern_list(text: str) -> bool:
    """Return True if a text is a list of names and Java regexes."""
    try:
        compile_list(parse_list(text))
    except ValueError:
        return False
    return True


def _with_aliases(settings: dict[str, Provenance]) -> dict[str, Provenance]:
    """Apply old names where the new one is absent, after all layers (KIP-629, `ConfigUtils`).

    A list that Java cannot read is ignored: MM2 4.0 ignores the name, and earlier versions did not start with it.
    """
    for new, old in OLD_NAMES.items():
        if old in settings and is_pattern_list(settings[old].value):
            settings.setdefault(new, settings[old])
    for old, new in FORMER_SETTINGS.items():
        if old in settings:
            settings.setdefault(new, settings[old])
    return settings


def _worker_settings(file: FileSettings, flow: FlowId) -> dict[str, Provenance]:
    """Return the settings of `MirrorMakerConfig.workerConfig` that concern positions."""
    origin = f"worker of {flow.target}"
    settings = _strip_prefix(file, f"{flow.target}.", origin)
    settings |= file.of_all_workers
    known = {definition.name: definition for definition in WORKER}
    effective = {name: setting for name, setting in settings.items() if name in known}
    for name, definition in known.items():
        if name not in effective and definition.default is not None:
            effective[name] = Provenance(value=definition.default.replace("<source>", flow.source))
    return effective


def _clients(connector: Settings, target: Settings) -> Iterator[tuple[str, Settings]]:
    location = connector.get("offset-syncs.topic.location")
    syncs = "target" if location is not None and location.value.strip() == "target" else "source"
    yield "data_consumer", _consumer(connector, "source")
    yield "source_admin", _client(connector, "source", "admin")
    yield "target_admin", _client(connector, "target", "admin")
    yield "data_producer", _data_producer(connector, target)
    yield "offset_syncs_producer", _client(connector, syncs, "producer")
    yield "offset_syncs_consumer", _consumer(connector, syncs)
    yield "target_internal", _connection(target)


def _client(connector: Settings, side: str, kind: str) -> dict[str, Provenance]:
    return {
        **_connection(_under_prefix(connector, f"{side}.cluster.")),
        **_under_prefix(connector, f"{kind}."),
        **_under_prefix(connector, f"{side}.{kind}."),
    }


def _consumer(connector: Settings, side: str) -> dict[str, Provenance]:
    defaults = {name: Provenance(value=value) for name, value in _CONSUMER_DEFAULTS.items()}
    forced = {name: Provenance(value=value) for name, value in _CONSUMER_FORCED.items()}
    return {**defaults, **_client(connector, side, "consumer"), **forced}


def _data_producer(connector: Settings, target: Settings) -> dict[str, Provenance]:
    """Return the settings of Connect's producer: the worker's `producer.` settings, then the connector's
    `producer.override.` ones.
    """
    return {
        # The worker sets the address itself; its other connection settings have been seeded as `producer.` ones.
        **{name: setting for name, setting in target.items() if name == "bootstrap.servers"},
        **_under_prefix(target, "producer."),
        **_under_prefix(connector, "producer.override."),
    }


def _connection(settings: Settings) -> dict[str, Provenance]:
    return {name: setting for name, setting in settings.items() if name in CLIENT_SET}


def _under_prefix(settings: Settings, prefix: str) -> dict[str, Provenance]:
    """Return the settings under a prefix, without it; `producer.override.` is not a part of `producer.`."""
    return {
        name.removeprefix(prefix): setting
        for name, setting in settings.items()
        if name.startswith(prefix)
        and name not in NOT_OF_A_CLIENT
        and not (prefix != "producer.override." and name.startswith("producer.override."))
    }


def _strip_prefix(file: FileSettings, prefix: str, origin: str) -> dict[str, Provenance]:
    return {
        key.removeprefix(prefix): setting.model_copy(update={"origin": origin}) for key, setting in file.under(prefix)
    }
