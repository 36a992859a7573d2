"""From connectors of MirrorMaker 2 to the settings of flows: which key of the file each setting becomes. Pure.

The rules are MM2's own, inverted: `MirrorConnectorConfig` for the clients inside connectors, Connect's `Worker` for the
producer of the data, `MirrorMakerConfig` for how a file of flows sets them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.config.file.derive import OLD_NAMES
from mirror_lib.config.file.known_classes import FOREIGN_CLASSES
from mirror_lib.config.settings.definition import Scope
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.config.settings.keys_of_transforms import CONNECT_TRANSFORMS, CONVERTERS, FLOW_PREFIXES
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME
from mirror_lib.config.settings.values import KNOWN_CLASSES
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connector_merge import MergedFlow, Setting, merge, same_value, shown_value
from mirror_lib.features.importers.connector_reasons import client_reason, connector_reason, worker_reason
from mirror_lib.features.importers.kafka_release import Release, kafka_release
from mirror_lib.features.importers.mirror_maker1 import APPLIED
from mirror_lib.features.importers.model import ConnectCluster, Connector, ConnectorKind, Worker
from mirror_lib.features.importers.questions import ANY_TEXT, KAFKA_VERSION, Answers, Question
from mirror_lib.features.importers.written_file import Listed, Placed
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import IDENTITY_LIKE

_BYTES = frozenset({"org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter"})
_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
#: Policies of others with the effect of Kafka's own since 3.0.
_SAME_AS_IDENTITY = IDENTITY_LIKE | FOREIGN_CLASSES.keys()
_POLICY = "replication.policy.class"
#: `DefaultTopicFilter` before Kafka 4.3 (KAFKA-17200).
_OLD_EXCLUDE = r".*[\-\.]internal, .*\.replica, __.*"
_NEW_EXCLUDE_SINCE: Release = (4, 3)
_OLD_NAMES_UNTIL: Release = (4, 0)
_NEW_NAMES = {old: new for new, old in OLD_NAMES.items()}
_SIDES = ("source", "target")
_KINDS = ("consumer", "producer", "admin")
_OF_WORKER = (
    "offset.storage.partitions",
    "offset.storage.replication.factor",
    "offset.flush.interval.ms",
    "exactly.once.source.support",
)
_POSITIONS = "offset.storage.topic"
_TOLERANCE = {
    "fail": "the partition stops at such a record",
    "skip": "such a record is skipped",
    "quarantine": "such a record is written to a separate topic",
}


@dataclass(slots=True)
class ImportedFlow:
    """One flow of the new file.

    `lines` and `listed` are in the order of the input; `notes` belong above them.
    """

    flow: FlowId
    kinds: tuple[ConnectorKind, ...]
    paused: bool
    names: tuple[str, ...]
    lines: list[Placed] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Settings of the two clusters: alias, name -> setting.
    clusters: dict[tuple[str, str], Setting] = field(default_factory=dict)


def plan_flows(clusters: Sequence[ConnectCluster], answers: Answers) -> tuple[ImportedFlow, ...]:
    """Return the flows of all connectors, in the order of their first occurrence.

    Raises:
        ConfigurationError: a connector does not say which clusters it belongs to.
    """
    found: list[ImportedFlow] = []
    for cluster in clusters:
        by_flow: dict[FlowId, list[Connector]] = {}
        for connector in cluster.connectors:
            by_flow.setdefault(_flow_of(connector), []).append(connector)
        for flow, connectors in by_flow.items():
            if any(each.flow == flow for each in found):
                raise ConfigurationError(
                    f"{flow} is defined twice: the second time by {connectors[0].origin}.",
                    action="Import them one by one.",
                )
            found.append(_Flow(merge(flow, connectors, answers), cluster.worker, answers).plan())
    return tuple(found)


def _flow_of(connector: Connector) -> FlowId:
    # Defaults of `MirrorConnectorConfig`.
    source = connector.config.get("source.cluster.alias", "source").strip()
    target = connector.config.get("target.cluster.alias", "target").strip()
    for alias in (source, target):
        if not alias or "->" in alias or not alias.isprintable() or any(each.isspace() for each in alias):
            raise ConfigurationError(
                f"{connector.origin}: {alias!r} is not a valid cluster alias.",
                action="Correct source.cluster.alias and target.cluster.alias.",
            )
    if source == target:
        raise ConfigurationError(
            f"{connector.origin}: source.cluster.alias and target.cluster.alias are both {source!r}.",
            action="Use two different aliases.",
        )
    return FlowId(source, target)


class _Flow:
    """Builds one flow."""

    def __init__(self, merged: MergedFlow, worker: Worker | None, answers: Answers) -> None:
        self._merged, self._worker, self._answers = merged, worker, answers
        self._flow = merged.flow
        self._source = merged.connectors.get(ConnectorKind.SOURCE)
        self._settings = dict(merged.settings)
        first = self._source or next(iter(merged.connectors.values()))
        self._origin = first.origin
        self._result = ImportedFlow(
            merged.flow,
            tuple(merged.connectors),
            paused=first.paused,
            names=tuple(dict.fromkeys(each.name for each in merged.connectors.values())),
        )
        self._result.listed += merged.listed

    def plan(self) -> ImportedFlow:
        self._switches()
        self._old_names()
        self._policy()
        self._tolerance()
        self._converters()
        self._data_brokers()
        for name, setting in self._settings.items():
            self._place(name, setting)
        self._exclusions()
        self._of_worker()
        return self._result

    # What the presence of a connector says

    def _switches(self) -> None:
        connectors = self._merged.connectors
        runs = self._source is not None and _is_not_false(self._source.config.get("enabled"))
        if self._source is None:
            self._answers.ask(
                Question(
                    f"{self._flow}.source-connector",
                    f"no MirrorSourceConnector for {self._flow}, which would copy its topics. Import it too, if it "
                    "exists.",
                    (("none", "the flow copies no topics"),),
                )
            )
        self._line("enabled", "true" if runs else "false", self._origin)
        checkpoint = connectors.get(ConnectorKind.CHECKPOINT)
        if checkpoint is None or not _is_not_false(checkpoint.config.get("enabled")):
            self._replace("emit.checkpoints.enabled", "false", "No MirrorCheckpointConnector runs")
        if ConnectorKind.HEARTBEAT not in connectors:
            self._replace("emit.heartbeats.enabled", "false", "No MirrorHeartbeatConnector runs")
        elif "emit.heartbeats.enabled" not in self._settings:
            # The whole file has it off, so that no additional pair of clusters emits.
            self._replace("emit.heartbeats.enabled", "true", "A MirrorHeartbeatConnector runs")

    def _replace(self, name: str, value: str, origin: str) -> None:
        self._settings[name] = Setting(value, origin)

    # What depends on the release of Kafka

    def _release(self, what: str) -> Release | None:
        stated = next((each.version for each in self._merged.connectors.values() if each.version), None)
        release = None if stated is None else kafka_release(stated)
        if release is not None:
            return release
        answer = self._answers.ask(
            Question(
                KAFKA_VERSION,
                f"{what} Which Kafka version runs Connect? (curl http://connect:8083/ prints it)",
                ((ANY_TEXT, "the version, such as 3.9 or 4.1"),),
            )
        )
        if answer is None:
            return None
        release = kafka_release(answer)
        if release is None:
            raise ConfigurationError(
                f"--answer {KAFKA_VERSION}={answer} is not a version.", action="Write it as 3.9 or 4.1.0."
            )
        return release

    def _old_names(self) -> None:
        for old, new in _NEW_NAMES.items():
            setting = self._settings.get(old)
            if setting is None:
                continue
            del self._settings[old]
            if new in self._settings:
                self._list(old, setting, f"{new} is set too and overrides it")
                continue
            release = self._release(f"{old} means {new} before Kafka 4.0, and has no effect later.")
            if release is not None and release >= _OLD_NAMES_UNTIL:
                self._list(old, setting, f"Kafka {release[0]}.{release[1]} ignores it; since 2.7 its name is {new}")
            else:
                self._settings[new] = setting

    def _exclusions(self) -> None:
        if self._source is None or "topics.exclude" in self._settings:
            return
        release = self._release(
            "topics.exclude is not set. Before Kafka 4.3 its default excluded all topics ending with .internal or "
            "-internal, and since then only those of MirrorMaker 2."
        )
        if release is not None and release < _NEW_EXCLUDE_SINCE:
            self._line("topics.exclude", _OLD_EXCLUDE, f"The default of Kafka {release[0]}.{release[1]}")

    # Decisions

    def _policy(self) -> None:
        setting = self._settings.get(_POLICY)
        if setting is None or setting.value.strip() in KNOWN_CLASSES[_POLICY]:
            return
        name = setting.value.strip()
        if name in _SAME_AS_IDENTITY:
            self._settings[_POLICY] = Setting(_IDENTITY, f"{setting.origin} ({name})")
            return
        answer = self._answers.ask(
            Question(
                f"{self._flow}.{_POLICY}",
                f"{self._flow} uses the Java class {name} for topic names, which cannot run here.",
                (
                    ("identity", "it keeps topic names"),
                    ("default", "it prefixes topic names with the alias of the source"),
                    (ANY_TEXT, "the dotted path of a Python class that does the same"),
                ),
            )
        )
        if answer == "default":
            del self._settings[_POLICY]
            self._list(_POLICY, setting, "answered in the import: Kafka's default")
        else:
            value = _IDENTITY if answer == "identity" else answer or name
            self._settings[_POLICY] = Setting(value, f"{setting.origin} ({name})")

    def _tolerance(self) -> None:
        setting = self._settings.get("errors.tolerance")
        if setting is None or setting.value.strip().lower() != "all":
            return
        answer = self._answers.ask(
            Question(
                f"{self._flow}.errors.tolerance",
                f"{setting.origin} has errors.tolerance=all: Connect skips records that it cannot convert, transform "
                "or write.",
                tuple(_TOLERANCE.items()),
            )
        )
        del self._settings["errors.tolerance"]
        if answer is not None:
            self._line("mirror.poison.policy", answer, f"errors.tolerance = {setting.value} of {setting.origin}")

    def _converters(self) -> None:
        """Converters matter if there are transforms; without them they should not change the bytes."""
        if self._source is None:
            return
        with_transforms = bool(self._settings.get(CONNECT_TRANSFORMS, Setting("", "")).value.strip())
        for name in CONVERTERS:
            setting = self._settings.get(name)
            if setting is None and self._worker is not None and name in self._worker.settings:
                setting = Setting(self._worker.settings[name], self._worker.origin)
                if with_transforms:
                    self._settings |= {
                        key: Setting(value, self._worker.origin)
                        for key, value in self._worker.settings.items()
                        if key == name or key.startswith(f"{name}.")
                    }
            if setting is None or with_transforms or name == "header.converter":
                continue
            if setting.value.strip() not in _BYTES:
                self._answers.ask(
                    Question(
                        f"{self._flow}.{name}",
                        f"{setting.origin} has {name}={setting.value.strip()}, so Connect does not write the "
                        "original bytes.",
                        (("bytes", "copy records unchanged from now on"),),
                    )
                )

    def _data_brokers(self) -> None:
        """In Connect the worker, or an override, says where records go."""
        name = "producer.override.bootstrap.servers"
        override, worker = self._settings.get(name), self._worker
        brokers = override
        if brokers is None and worker is not None and not worker.connects_as_target:
            text = worker.settings.get("producer.bootstrap.servers") or worker.settings.get("bootstrap.servers")
            brokers = None if text is None else Setting(text, worker.origin)
        target = self._settings.get("target.cluster.bootstrap.servers")
        if brokers is None or self._source is None:
            return
        if target is None:
            self._settings["target.cluster.bootstrap.servers"] = brokers
        elif not same_value(name, brokers.value, target.value):
            answer = self._answers.ask(
                Question(
                    f"{self._flow}.data-brokers",
                    f"{brokers.origin} sends records to {shown_value(name, brokers.value)}, but the target "
                    f"{self._flow.target} has {shown_value(name, target.value)}.",
                    (
                        ("target", "both are the same cluster: use the target's brokers"),
                        ("producer", "send records to the producer's brokers, and all else to the target's"),
                    ),
                )
            )
            if answer == "producer":
                self._settings[name] = brokers
                return
        if override is not None:
            del self._settings[name]
            self._list(name, override, "records are sent to the brokers of the target anyway")

    # Place of a setting in the file

    def _place(self, name: str, setting: Setting) -> None:
        side, _, rest = name.partition(".")
        if name.startswith(("source.cluster.", "target.cluster.")):
            self._of_cluster(side, rest.removeprefix("cluster."), name, setting)
        elif (client := _client_of(name)) is not None:
            self._of_client(*client, name, setting)
        elif name == CONNECT_TRANSFORMS or name in ("predicates", *CONVERTERS) or name.startswith(FLOW_PREFIXES):
            self._of_transforms(name, setting)
        elif name.startswith("replication.policy.") or _is_of_flow(name):
            self._line(name, setting.value, setting.origin)
        else:
            self._list(name, setting, connector_reason(name))

    def _of_cluster(self, side: str, rest: str, name: str, setting: Setting) -> None:
        alias = self._flow.source if side == "source" else self._flow.target
        if rest == "alias":
            return
        if rest in CLIENT_SET:
            self._result.clusters[alias, rest] = setting
        else:
            self._list(name, setting, "MirrorMaker 2 reads only connection settings from it")

    def _of_client(self, sides: tuple[str, ...], kind: str, rest: str, name: str, setting: Setting) -> None:
        if kind.endswith(".override") and kind != "producer.override":
            self._list(name, setting, client_reason(kind, rest, self._flow))
        elif kind == "producer.override":
            if rest in CLIENT_SET or rest in APPLIED["producer"]:
                self._line(name, setting.value, setting.origin)
            else:
                self._list(name, setting, client_reason("producer", rest, self._flow))
        elif rest not in CLIENT_SET and not _has_effect(kind, rest):
            self._list(name, setting, client_reason(kind, rest, self._flow))
        elif rest in CLIENT_SET and not name.startswith(_SIDES):
            # Settings of a cluster become settings of each of its clients in a file, and those would override this one.
            for side in sides:
                if f"{side}.{name}" not in self._settings:
                    self._line(f"{side}.{name}", setting.value, setting.origin)
        else:
            self._line(name, setting.value, setting.origin)

    def _of_transforms(self, name: str, setting: Setting) -> None:
        chain = self._settings.get(CONNECT_TRANSFORMS)
        if chain is not None and chain.value.strip():
            self._line(name, setting.value, setting.origin)
        else:
            self._list(name, setting, "without transforms, record batches are copied as bytes")

    def _of_worker(self) -> None:
        """Keep the worker's positions, and its settings for the producer of the data."""
        worker, flow = self._worker, self._flow
        if worker is None:
            return
        prefix = f"{flow}.producer.override."
        placed = {each.key for each in self._result.lines}
        for name, value in worker.settings.items():
            setting = Setting(value, worker.origin)
            client = name.removeprefix("producer.")
            target = self._settings.get(f"target.cluster.{client}")
            if name in _OF_WORKER or (name == _POSITIONS and self._has_own_positions()):
                self._result.clusters[flow.target, name] = setting
            elif name in CONVERTERS or name.startswith("config.providers"):
                continue
            elif name != client and client in CLIENT_SET:
                if target is not None and same_value(client, value, target.value):
                    continue
                if client != "bootstrap.servers" and prefix + client not in placed:
                    self._result.lines.append(Placed(worker.origin, name, prefix + client, value))
            elif name != client and client in APPLIED["producer"]:
                if prefix + client not in placed:
                    self._result.lines.append(Placed(worker.origin, name, prefix + client, value))
            elif name != client:
                self._list(name, setting, client_reason("producer", client, flow))
            else:
                self._list(name, setting, worker_reason(name))

    def _has_own_positions(self) -> bool:
        """Return True if the positions in the worker's topic are under the name that a dedicated MM2 and this project
        use.
        """
        return self._source is not None and self._source.name == ConnectorKind.SOURCE.value

    def _line(self, name: str, value: str, origin: str) -> None:
        self._result.lines.append(Placed(origin, name, f"{self._flow}.{name}", value))

    def _list(self, name: str, setting: Setting, reason: str) -> None:
        self._result.listed.append(Listed(setting.origin, name, setting.value, reason))


def _is_of_flow(name: str) -> bool:
    """Return True if a setting of MM2's connectors has an effect here."""
    return name in MM2_BY_NAME and not MM2_BY_NAME[name].instead and MM2_BY_NAME[name].scope is not Scope.TOP


def _is_not_false(text: str | None) -> bool:
    return text is None or text.strip().lower() != "false"


def _has_effect(kind: str, name: str) -> bool:
    return name in APPLIED.get(kind, APPLIED["admin"]) or (kind == "consumer" and name == "auto.offset.reset")


def _client_of(name: str) -> tuple[tuple[str, ...], str, str] | None:
    """Return the sides, the client and its setting that a name of a connector means."""
    if name in MM2_BY_NAME:
        return None
    sides: tuple[str, ...] = _SIDES
    rest = name
    for side in _SIDES:
        if name.startswith(f"{side}."):
            sides, rest = (side,), name.removeprefix(f"{side}.")
    for kind in _KINDS:
        if rest.startswith(f"{kind}.override.") and len(sides) == 2:
            return sides, f"{kind}.override", rest.removeprefix(f"{kind}.override.")
        if rest.startswith(f"{kind}."):
            return sides, kind, rest.removeprefix(f"{kind}.")
    return None


def cluster_lines(flows: Sequence[ImportedFlow], answers: Answers) -> Iterator[Placed]:
    """Yield the settings of each cluster, once. If flows have different ones, the operator decides."""
    aliases = dict.fromkeys(alias for each in flows for alias in (each.flow.source, each.flow.target))
    for alias in aliases:
        names = dict.fromkeys(name for each in flows for (of, name) in each.clusters if of == alias)
        for name in names:
            having = {each.flow: each.clusters[alias, name] for each in flows if (alias, name) in each.clusters}
            first = next(iter(having.values()))
            differing = {flow: each for flow, each in having.items() if not same_value(name, each.value, first.value)}
            if differing:
                first = _choose(alias, name, having, answers)
            yield Placed(first.origin, name, f"{alias}.{name}", first.value)


def _choose(alias: str, name: str, having: Mapping[FlowId, Setting], answers: Answers) -> Setting:
    texts = "; ".join(f"{flow} has {shown_value(name, each.value)}" for flow, each in having.items())
    answer = answers.ask(
        Question(
            f"{alias}.{name}",
            f"the cluster {alias} can have one {name}, but its flows have different values: {texts}.",
            tuple((str(flow), f"as in {flow}") for flow in having),
        )
    )
    return next((each for flow, each in having.items() if str(flow) == answer), next(iter(having.values())))
