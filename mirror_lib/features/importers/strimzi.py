"""MirrorMaker 2 as described by Strimzi's resources: `KafkaMirrorMaker2` (v1beta2, v1) and `KafkaConnector`. Pure.

The settings of a connector are merged as in `KafkaMirrorMaker2Connectors`: settings of the target cluster, of the
source cluster, of the connector, patterns of the mirror; later ones override. Before Strimzi 0.49 (always `v1beta2`)
the connector's settings came first, so those of the clusters overrode them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connect_json import text_of, texts_of
from mirror_lib.features.importers.kubernetes_yaml import is_null
from mirror_lib.features.importers.model import ConnectCluster, Connector, ConnectorKind, Worker, kind_of
from mirror_lib.features.importers.questions import Answers, Question
from mirror_lib.features.importers.strimzi_login import read_login
from mirror_lib.features.importers.written_file import Listed

GROUP = "kafka.strimzi.io/"
#: Of operators that are Strimzi under another name, with the same fields: IBM Event Streams.
_GROUPS = (GROUP, "eventstreams.ibm.com/")
MIRROR_MAKER, CONNECTOR = "KafkaMirrorMaker2", "KafkaConnector"
_VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha1")
_CONNECTORS = {
    "sourceConnector": ConnectorKind.SOURCE,
    "checkpointConnector": ConnectorKind.CHECKPOINT,
    "heartbeatConnector": ConnectorKind.HEARTBEAT,
}
#: Key of a mirror -> setting of its connectors; of two keys for one setting the first applies.
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
#: `KafkaMirrorMaker2Configuration.DEFAULTS`
_WORKER_DEFAULTS = {
    **{
        f"{side}.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"
        for side in ("key", "value", "header")
    },
    "offset.storage.topic": "mirrormaker2-cluster-offsets",
}
_WORKER_TOPICS = {"offsetStorageTopic": "offset.storage.topic", "groupId": "group.id"}
_NO_PODS = "it describes pods of Kafka Connect, which do not exist here"
_NO_RESTARTS = "the next run retries failed partitions"
_SPEC_REASONS = {
    "replicas": f"{_NO_PODS}; tasks.max limits parallel copy tasks",
    "resources": f"{_NO_PODS}; mirror.task.memory.bytes limits a task's memory (docs/spark.md)",
    "jvmOptions": "there is no JVM of Connect here; see docs/spark.md for Spark's memory",
    "metricsConfig": "there is no JVM that could report metrics; see docs/metrics.md for the metrics of this program",
    "jmxOptions": "there is no JVM that could report metrics; see docs/metrics.md for the metrics of this program",
    "tracing": "its interceptors are Java classes, which cannot run here",
    "logging": "it configures Log4j of Kafka Connect, which does not run here",
    "rack": "the rack of a pod's node is unknown here: <source>.consumer.client.rack selects the nearest replica",
    **dict.fromkeys(("image", "livenessProbe", "readinessProbe", "template", "clientRackInitImage"), _NO_PODS),
    "externalConfiguration": (
        "it mounts secrets into pods of Connect: provide their values on the machines that run tasks (docs/secrets.md)"
    ),
}
_UNKNOWN = "Strimzi has no such field and ignores it"
_CONNECTOR_REASONS = {
    "autoRestart": _NO_RESTARTS,
    "listOffsets": "mirror position show prints the positions",
    "alterOffsets": "mirror position set changes positions",
    "version": "there are no Connect plugins here",
}
_USED_SPEC = frozenset({"version", "clusters", "connectCluster", "mirrors", "target"})
_USED_CONNECTOR = frozenset({"tasksMax", "config", "pause", "state", "class"})
_NO_CONNECTOR = "has neither sourceConnector nor checkpointConnector nor heartbeatConnector: Strimzi runs nothing"
_NOT_CONNECTION = "MirrorMaker 2 reads only connection settings from the config of a cluster"
_DROPPED = "Strimzi passes only sasl.* and ssl.keystore.* of a custom login"
_PAUSED = frozenset({"paused", "stopped"})
#: `AbstractConnectorSpec.FORBIDDEN_PARAMETERS`
_FORBIDDEN = frozenset({"name", "connector.class", "tasks.max", "connector.plugin.version"})
_NOT_LET_THROUGH = "Strimzi does not pass it; tasksMax of the connector is used, default 1"


def is_resource(document: Any) -> bool:
    """Return True if a document is a resource of Kubernetes, or a list of them."""
    return isinstance(document, dict) and "apiVersion" in document and "kind" in document


def clusters_in(documents: Sequence[Any], origin: str, answers: Answers) -> tuple[ConnectCluster, ...]:
    """Return the Connect clusters of all resources; resources of other kinds are skipped.

    Raises:
        ConfigurationError: no resource is one of MirrorMaker 2, or one has another form.
    """
    found: list[ConnectCluster] = []
    loose: list[Connector] = []
    listed: list[Listed] = []
    kinds: dict[str, None] = {}
    for resource in _resources(documents):
        kind = str(resource.get("kind"))
        api = str(resource.get("apiVersion", ""))
        if not api.startswith(_GROUPS):
            # Others give the same name to other fields.
            kinds[f"{kind} of {api}" if kind in (MIRROR_MAKER, CONNECTOR) else kind] = None
            continue
        kinds[kind] = None
        if kind == MIRROR_MAKER:
            found += _MirrorMaker(resource, origin, answers).read()
        elif kind == CONNECTOR:
            loose += _connector_resource(resource, origin, listed)
    if loose:
        found.append(ConnectCluster(tuple(loose), listed=tuple(listed)))
    if not found:
        raise ConfigurationError(
            f"{origin} has no resource {GROUP}* of the kind {MIRROR_MAKER} nor a {CONNECTOR} of MirrorMaker 2, only "
            f"{', '.join(kinds) or 'none'}.",
            action="Pass the output of: kubectl get kmm2 -A -o yaml",
        )
    return tuple(found)


def _resources(documents: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for document in documents:
        if not isinstance(document, dict):
            continue
        if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
            yield from _resources(document["items"])
        elif is_resource(document):
            yield document


def _title(resource: Mapping[str, Any], origin: str) -> tuple[str, str | None]:
    metadata = resource.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    shown = f"{resource['kind']} {name}" if isinstance(name, str) else f"{resource['kind']} of {origin}"
    return shown, namespace if isinstance(namespace, str) and not is_null(namespace) else None


class _MirrorMaker:
    """One `KafkaMirrorMaker2`."""

    def __init__(self, resource: Mapping[str, Any], origin: str, answers: Answers) -> None:
        self._title, self._namespace = _title(resource, origin)
        self._answers = answers
        self._spec = _object(resource.get("spec"), f"{self._title}: spec")
        group, _, api = str(resource["apiVersion"]).partition("/")
        if api not in _VERSIONS:
            raise ConfigurationError(
                f"{self._title} has the unknown apiVersion {group}/{api}.",
                action=f"Supported: {', '.join(_VERSIONS)}: kubectl get kafkamirrormaker2s.v1.kafka.strimzi.io -o yaml",
            )
        self._may_be_old = api != "v1"
        status = resource.get("status")
        self._status = status if isinstance(status, dict) else {}
        self._listed: list[Listed] = []
        self._notes: list[str] = []

    def read(self) -> tuple[ConnectCluster, ...]:
        """Return a Connect cluster for each mirror: each may connect as its target or not."""
        mirrors = self._spec.get("mirrors")
        if not isinstance(mirrors, list) or not mirrors:
            raise ConfigurationError(f"{self._title}: spec.mirrors has no mirror.", action="Correct the resource.")
        found: list[ConnectCluster] = []
        self._list_spec()
        for index, each in enumerate(mirrors):
            where = f"spec.mirrors[{index}]"
            mirror = _object(each, f"{self._title}: {where}")
            source, target, described = self._ends(mirror, where)
            connectors = tuple(self._connectors(mirror, where, source, target))
            if not connectors:
                self._notes.append(f"{self._title}: {where} {_NO_CONNECTOR}, so it has no flow here.")
            worker = self._worker(target, described)
            listed, notes = tuple(dict.fromkeys(self._listed)), tuple(dict.fromkeys(self._notes))
            found.append(ConnectCluster(connectors, worker, listed, notes))
            self._listed, self._notes = [], []
        if not any(each.connectors for each in found):
            raise ConfigurationError(
                f"{self._title}: no mirror has a connector, so Strimzi copies nothing.",
                action="Add sourceConnector: {} to the mirrors that are to copy records.",
            )
        return tuple(found)

    def _ends(
        self, mirror: Mapping[str, Any], where: str
    ) -> tuple[dict[str, str], dict[str, str], tuple[Mapping[str, Any], str]]:
        """Return the settings of both clusters with their prefixes, and the target as it is described."""
        if not is_null(mirror.get("source")):
            source, source_where = _object(mirror["source"], f"{self._title}: {where}.source"), f"{where}.source"
        else:
            source, source_where = self._find_cluster(mirror.get("sourceCluster"), f"{where}.sourceCluster")
        if not is_null(self._spec.get("target")):
            target, target_where = _object(self._spec["target"], f"{self._title}: spec.target"), "spec.target"
        else:
            target, target_where = self._find_cluster(mirror.get("targetCluster"), f"{where}.targetCluster")
        return (
            self._cluster(source, source_where, "source.cluster."),
            self._cluster(target, target_where, "target.cluster."),
            (target, target_where),
        )

    def _find_cluster(self, alias: Any, where: str) -> tuple[Mapping[str, Any], str]:
        clusters = self._spec.get("clusters")
        for index, each in enumerate(clusters if isinstance(clusters, list) else ()):
            if isinstance(each, dict) and not is_null(alias) and each.get("alias") == alias:
                return each, f"spec.clusters[{index}]"
        if is_null(alias):
            raise ConfigurationError(f"{self._title}: {where} is missing.", action="Correct the resource.")
        raise ConfigurationError(
            f"{self._title}: {where} refers to {alias!r}, which is not in spec.clusters.",
            action="Correct the resource.",
        )

    def _cluster(self, cluster: Mapping[str, Any], where: str, prefix: str) -> dict[str, str]:
        title = f"{self._title}: {where}"
        settings = {
            "alias": self._require(cluster, "alias", title),
            "bootstrap.servers": self._require(cluster, "bootstrapServers", title),
        }
        login = read_login(cluster, title, self._namespace, self._answers)
        settings |= login.settings
        self._notes += login.notes
        self._listed += [Listed(title, name, value, _DROPPED) for name, value in login.dropped.items()]
        config = {} if is_null(cluster.get("config")) else texts_of(cluster["config"], f"{title}.config")
        for name, value in config.items():
            if name in CLIENT_SET:
                settings[name] = value
            elif prefix == "source.cluster.":
                self._listed.append(Listed(f"{title}.config", name, value, _NOT_CONNECTION))
        return {prefix + name: value for name, value in settings.items()}

    def _require(self, cluster: Mapping[str, Any], name: str, title: str) -> str:
        value = cluster.get(name)
        if not isinstance(value, str) or is_null(value):
            raise ConfigurationError(f"{title}.{name} is missing.", action="Correct the resource.")
        return value

    def _worker(self, target: dict[str, str], described: tuple[Mapping[str, Any], str]) -> Worker:
        """Return the settings of the worker: the config of the cluster that `connectCluster` names, or of `target`."""
        cluster, where = described
        connect = self._spec.get("connectCluster")
        as_target = True
        if is_null(self._spec.get("target")) and not is_null(connect) and connect != cluster.get("alias"):
            cluster, where = self._find_cluster(connect, "spec.connectCluster")
            as_target = False
        title = f"{self._title}: {where}.config"
        settings = dict(_WORKER_DEFAULTS)
        settings |= {} if is_null(cluster.get("config")) else texts_of(cluster["config"], title)
        for name, setting in _WORKER_TOPICS.items():
            if isinstance(cluster.get(name), str):
                settings[setting] = cluster[name]
        if not as_target:
            settings["bootstrap.servers"] = self._require(cluster, "bootstrapServers", f"{self._title}: {where}")
            # Operators before 0.49 accept an alias of the same brokers.
            as_target = settings["bootstrap.servers"] == target["target.cluster.bootstrap.servers"]
        if as_target:
            settings = {name: value for name, value in settings.items() if name not in CLIENT_SET}
        return Worker(title, settings, connects_as_target=as_target)

    def _connectors(
        self, mirror: Mapping[str, Any], where: str, source: dict[str, str], target: dict[str, str]
    ) -> Iterator[Connector]:
        ends = target | source
        flow = f"{source['source.cluster.alias']}->{target['target.cluster.alias']}"
        patterns: dict[str, str] = {}
        for name, setting in _PATTERNS.items():
            value = mirror.get(name)
            if isinstance(value, str) and not is_null(value):
                patterns.setdefault(setting, value)
        for name, kind in _CONNECTORS.items():
            if name not in mirror or is_null(mirror[name]):
                continue
            title = f"{self._title}: {where}.{name}"
            spec = _object(mirror[name], title)
            given = self._config_of(spec, title)
            config = {**(given | ends if self._clusters_win(given, ends, title) else ends | given), **patterns}
            if not is_null(spec.get("tasksMax")):
                config["tasks.max"] = str(text_of(spec["tasksMax"], f"{title}.tasksMax"))
            config["connector.class"] = f"org.apache.kafka.connect.mirror.{kind.value}"
            self._listed += _listed_parts(spec, title, _USED_CONNECTOR, _CONNECTOR_REASONS)
            connector = f"{flow}.{kind.value}"
            paused = _is_paused(spec) or self._state(connector) in _PAUSED
            yield Connector(title, connector, kind, config, paused, self._version())
        known = {*_PATTERNS, *_CONNECTORS, "source", "sourceCluster", "targetCluster"}
        self._listed += _listed_parts(mirror, f"{self._title}: {where}", known, {})

    def _config_of(self, spec: Mapping[str, Any], title: str) -> dict[str, str]:
        given = {} if is_null(spec.get("config")) else texts_of(spec["config"], f"{title}.config")
        self._listed += [
            Listed(f"{title}.config", name, value, _NOT_LET_THROUGH)
            for name, value in given.items()
            if name in _FORBIDDEN
        ]
        return {name: value for name, value in given.items() if name not in _FORBIDDEN}

    def _clusters_win(self, given: Mapping[str, str], ends: Mapping[str, str], title: str) -> bool:
        """Return True if settings of the clusters override those of a connector, as before Strimzi 0.49."""
        both = sorted(name for name in given if given[name] != ends.get(name, given[name]))
        if not both or not self._may_be_old:
            return False
        answer = self._answers.ask(
            Question(
                "strimzi-version",
                f"{title}.config sets {', '.join(both)} to other values than the cluster. Which of them is used "
                "depends on the version of Strimzi's operator.",
                (("before-0.49", "use the cluster's settings"), ("since-0.49", "use the connector's settings")),
            )
        )
        return answer == "before-0.49"

    def _state(self, connector: str) -> str:
        listed = self._status.get("connectors")
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict) and each.get("name") == connector:
                state = each.get("connector")
                return str(state.get("state")).lower() if isinstance(state, dict) else ""
        return ""

    def _version(self) -> str | None:
        """Return the version of Kafka: from the resource, else from the plugins in its status."""
        version = self._spec.get("version")
        if isinstance(version, str) and not is_null(version):
            return version
        plugins = self._status.get("connectorPlugins")
        for each in plugins if isinstance(plugins, list) else ():
            if isinstance(each, dict) and kind_of(str(each.get("class", ""))) is not None:
                found = each.get("version")
                return found if isinstance(found, str) else None
        return None

    def _list_spec(self) -> None:
        self._listed += _listed_parts(self._spec, f"{self._title}: spec", _USED_SPEC, _SPEC_REASONS)


def _connector_resource(resource: Mapping[str, Any], origin: str, listed: list[Listed]) -> Iterator[Connector]:
    """Yield a `KafkaConnector` whose class is one of MM2's."""
    title, _ = _title(resource, origin)
    spec = _object(resource.get("spec"), f"{title}: spec")
    kind = kind_of(str(spec.get("class", "")))
    if kind is None:
        return
    config = {} if is_null(spec.get("config")) else texts_of(spec["config"], f"{title}: spec.config")
    config["connector.class"] = str(spec["class"])
    if not is_null(spec.get("tasksMax")):
        config["tasks.max"] = str(text_of(spec["tasksMax"], f"{title}: spec.tasksMax"))
    listed += _listed_parts(spec, f"{title}: spec", _USED_CONNECTOR, _CONNECTOR_REASONS)
    yield Connector(title, title.partition(" ")[2], kind, config, _is_paused(spec))


def _is_paused(spec: Mapping[str, Any]) -> bool:
    """Return True if paused: `state` has priority over the older `pause`."""
    state = spec.get("state")
    if isinstance(state, str) and not is_null(state):
        return state.lower() in _PAUSED
    return spec.get("pause") == "true"


def _listed_parts(
    part: Mapping[str, Any], title: str, used: frozenset[str] | set[str], reasons: Mapping[str, str]
) -> list[Listed]:
    """Yield unused parts, with their value if that is short."""
    found = []
    for name, value in part.items():
        if name in used or is_null(value):
            continue
        shown = value if isinstance(value, str) else json.dumps(value)
        shown = shown if len(shown) <= 60 else "(...)"
        found.append(Listed(title, str(name), shown, reasons.get(str(name), _UNKNOWN)))
    return found


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if is_null(value):
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where} must be an object.", action="Correct the resource.")
    return value
