"""Every setting of MM2 4.x and of this project: name, type, default, where it is allowed, and its effect here.

The rows restate the ConfigDefs of `MirrorMakerConfig`, `MirrorConnectorConfig`, `MirrorSourceConfig`,
`MirrorCheckpointConfig`, `MirrorHeartbeatConfig` and the filters. Client and worker names are in `kafka_names`, names
of other versions and of vendor documents in `unknown_names`, the project's own keys in `mirror_keys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mirror_lib.topology import Value, ValueType, parse_value

_JAVA = "org.apache.kafka.connect.mirror"

BOOLEAN, SHORT, INT, LONG = ValueType.BOOLEAN, ValueType.SHORT, ValueType.INT, ValueType.LONG
STRING, LIST, CLASS, DOUBLE = ValueType.STRING, ValueType.LIST, ValueType.CLASS, ValueType.DOUBLE


class Scope(Enum):
    """Where a key is allowed in the file."""

    #: Only as `name`.
    TOP = "top level"
    #: As `name` for all flows or as `A->B.name` for one.
    FLOW = "top level, flow"
    #: Only as `A->B.name`; MM2 drops it silently at the top level.
    FLOW_ONLY = "flow"
    #: As `B.name` for the flows whose target is B.
    CLUSTER = "cluster"
    #: As `B.name`, or as `name`, which then has priority (MM2's worker rules).
    WORKER = "top level, cluster"


@dataclass(frozen=True, slots=True)
class Definition:
    """One setting. `default` is the text of the default value; None means that there is none."""

    name: str
    type: ValueType
    default: str | None
    scope: Scope
    since: str
    meaning: str
    #: Set if this project does not apply the setting: the sentence that says what happens instead.
    instead: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    #: True if Kafka accepts the choices in capitals too (`ConfigDef.CaseInsensitiveValidString`).
    any_case: bool = False

    @property
    def field(self) -> str:
        """The name of the attribute that holds the value in `FlowConfig`."""
        return self.name.replace(".", "_").replace("-", "_")

    def parse(self, text: str) -> Value:
        """Return the typed value.

        Raises:
            ValueError: wrong type or outside the range; the message completes "must be".
        """
        value = parse_value(self.type, text)
        if self.any_case and isinstance(value, str):
            value = value.lower()
        if self.choices and value not in self.choices:
            raise ValueError("one of " + ", ".join(self.choices))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            _check_range(value, self.minimum, self.maximum)
        return value


def _check_range(value: float, minimum: float | None, maximum: float | None) -> None:
    if maximum is not None and not (minimum or 0) <= value <= maximum:
        raise ValueError(f"from {minimum or 0} to {maximum}")
    if minimum is not None and value < minimum:
        raise ValueError(f"at least {minimum}")


def _flow(name: str, kind: ValueType, default: str | None, since: str, meaning: str, instead: str = "") -> Definition:
    return Definition(name, kind, default, Scope.FLOW, since, meaning, instead)


def _flow_only(name: str, kind: ValueType, default: str | None, since: str, meaning: str, instead: str) -> Definition:
    return Definition(name, kind, default, Scope.FLOW_ONLY, since, meaning, instead)


_NO_REST = "there are no Connect workers here that would talk to each other, so nothing listens"
_NO_CONNECT_RETRIES = "failed partitions are reported one by one and tried again by the next run"
_ALWAYS_EXACTLY_ONCE = "the copy is always exactly-once and needs no transactions on the target"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_MORE = "See [transforms.md](transforms.md)."
_SUB_KEYS = f"What belongs to them stands as `A->B.` only. {_MORE}"

TOP_LEVEL = (
    Definition("clusters", LIST, None, Scope.TOP, "2.4", "The aliases of all clusters. Required."),
    Definition(
        "config.providers",
        LIST,
        "",
        Scope.TOP,
        "2.4",
        "Names of the providers that resolve `${name:path:key}` in values; each needs `config.providers.<name>.class` "
        "and may have `config.providers.<name>.param.*`.",
    ),
    Definition(
        "dedicated.mode.enable.internal.rest",
        BOOLEAN,
        "false",
        Scope.TOP,
        "3.5",
        "Starts the REST server through which the workers of a dedicated cluster talk.",
        _NO_REST,
    ),
    *(
        Definition(name, STRING, None, Scope.TOP, "3.5", "Address of the internal REST server.", _NO_REST)
        for name in (
            "listeners",
            "rest.advertised.host.name",
            "rest.advertised.port",
            "rest.advertised.listener",
            "admin.listeners",
        )
    ),
    Definition(
        "bootstrap.servers",
        LIST,
        None,
        Scope.TOP,
        "2.4",
        "Brokers for every cluster that has no `bootstrap.servers` of its own.",
    ),
)

_SWITCH_NOTE = " An `.enabled` of false switches the work off whatever its interval."

MM2_FLOW = (
    _flow("enabled", BOOLEAN, "false", "2.4", "Whether topics and group positions of this flow are replicated."),
    _flow(
        "source.cluster.alias",
        STRING,
        None,
        "2.4",
        "What remote topics, positions, checkpoints and heartbeats call the source; by default its name in the flow. "
        "At the top level it counts for every flow.",
    ),
    _flow(
        "target.cluster.alias",
        STRING,
        None,
        "2.4",
        "What offset-syncs, heartbeats and the search for circles call the target; by default its name in the flow.",
    ),
    _flow("admin.timeout.ms", LONG, "60000", "2.4", "Longest wait for one administrative request, milliseconds."),
    _flow(
        "replication.policy.class",
        CLASS,
        f"{_JAVA}.DefaultReplicationPolicy",
        "2.4",
        "Remote topic names: Kafka's `DefaultReplicationPolicy` or `IdentityReplicationPolicy` by their Java names, "
        "or a Python class by its dotted path.",
    ),
    _flow(
        "replication.policy.separator",
        STRING,
        ".",
        "2.4",
        "Between alias and topic. Used as written, trailing blanks included.",
    ),
    _flow(
        "replication.policy.internal.topic.separator.enabled",
        BOOLEAN,
        "true",
        "3.6",
        "False keeps `.` in the names of internal topics although another separator is set (KIP-949).",
    ),
    _flow(
        "forwarding.admin.class",
        CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "3.4",
        "A Java class through which MM2 sends administrative requests (KIP-787).",
        "administrative requests go straight to the clusters",
    ),
    _flow(
        "metric.reporters",
        LIST,
        "org.apache.kafka.common.metrics.JmxReporter",
        "2.4",
        "Java classes that publish metrics.",
        "there is no JVM whose metrics could be reported",
    ),
    _flow("emit.offset-syncs.enabled", BOOLEAN, "true", "3.9", "Whether offset-syncs are written (KIP-1031)."),
    Definition(
        "offset-syncs.topic.location",
        STRING,
        "source",
        Scope.FLOW,
        "3.0",
        "The cluster that holds the offset-syncs topic, `source` or `target` (KIP-716).",
        choices=("source", "target"),
    ),
    _flow(
        "topic.filter.class",
        CLASS,
        f"{_JAVA}.DefaultTopicFilter",
        "2.4",
        "Selects topics: Kafka's class or a Python class by its dotted path.",
    ),
    _flow(
        "consumer.poll.timeout.ms",
        LONG,
        "1000",
        "2.4",
        "How long MM2's consumer waits for records.",
        "a run ends when it has caught up, so nothing polls for new records",
    ),
    _flow("topics", LIST, ".*", "2.4", "Topics to replicate: names or Java regexes that match the whole name."),
    _flow(
        "topics.exclude",
        LIST,
        r"mm2.*\.internal, .*\.replica, __.*",
        "2.7",
        "Topics not to replicate; wins over `topics`. A list of your own replaces the default.",
    ),
    _flow(
        "config.properties.exclude",
        LIST,
        r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
        r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
        r"min\.insync\.replicas",
        "2.7",
        "Topic settings that are not copied. A list of your own replaces the default.",
    ),
    _flow(
        "config.property.filter.class",
        CLASS,
        f"{_JAVA}.DefaultConfigPropertyFilter",
        "2.4",
        "Selects topic settings: Kafka's class or a Python class by its dotted path.",
    ),
    _flow_only(
        "use.defaults.from",
        STRING,
        "target",
        "3.5",
        "`source` copies also the source's built-in defaults of topic settings (KIP-894); any other text means target.",
        "",
    ),
    _flow("refresh.topics.enabled", BOOLEAN, "true", "2.4", "Whether new topics and partitions are looked for."),
    _flow("refresh.topics.interval.seconds", LONG, "600", "2.4", "Interval of that." + _SWITCH_NOTE),
    _flow("sync.topic.configs.enabled", BOOLEAN, "true", "2.4", "Whether topic settings are copied."),
    _flow("sync.topic.configs.interval.seconds", LONG, "600", "2.4", "Interval of that."),
    _flow("sync.topic.acls.enabled", BOOLEAN, "true", "2.4", "Whether topic ACLs are copied."),
    _flow("sync.topic.acls.interval.seconds", LONG, "600", "2.4", "Interval of that."),
    _flow(
        "replication.factor",
        INT,
        "2",
        "2.4",
        "Replication factor of new remote topics; -1 takes the target's default. The source's is never copied.",
    ),
    _flow("offset-syncs.topic.replication.factor", SHORT, "3", "2.4", "Replication factor of the offset-syncs topic."),
    _flow(
        "offset.lag.max",
        LONG,
        "100",
        "2.4",
        "Records by which an offset-sync may be out of date before a new one is written.",
    ),
    _flow(
        "heartbeats.replication.enabled",
        BOOLEAN,
        "true",
        "4.0",
        "Whether heartbeats topics are replicated whatever the topic filter says (KIP-1089).",
    ),
    _flow("groups", LIST, ".*", "2.4", "Consumer groups whose positions are replicated: names or Java regexes."),
    _flow(
        "groups.exclude",
        LIST,
        "console-consumer-.*, connect-.*, __.*",
        "2.7",
        "Groups not to replicate; wins over `groups`. A list of your own replaces the default.",
    ),
    _flow(
        "group.filter.class",
        CLASS,
        f"{_JAVA}.DefaultGroupFilter",
        "2.4",
        "Selects groups: Kafka's class or a Python class by its dotted path.",
    ),
    _flow("refresh.groups.enabled", BOOLEAN, "true", "2.4", "Whether new groups are looked for."),
    _flow("refresh.groups.interval.seconds", LONG, "600", "2.4", "Interval of that."),
    _flow("emit.checkpoints.enabled", BOOLEAN, "true", "2.4", "Whether translated group positions are published."),
    _flow("emit.checkpoints.interval.seconds", LONG, "60", "2.4", "Interval of that."),
    _flow(
        "sync.group.offsets.enabled",
        BOOLEAN,
        "false",
        "2.7",
        "Whether translated positions are written to the target's groups (KIP-545); needs checkpoints.",
    ),
    _flow("sync.group.offsets.interval.seconds", LONG, "60", "2.7", "Interval of that."),
    _flow("checkpoints.topic.replication.factor", SHORT, "3", "2.4", "Replication factor of the checkpoints topic."),
    _flow(
        "emit.heartbeats.enabled",
        BOOLEAN,
        "true",
        "2.4",
        "Whether heartbeats are written to the target, also by flows that are not enabled.",
    ),
    _flow("emit.heartbeats.interval.seconds", LONG, "1", "2.4", "Interval of that."),
    _flow("heartbeats.topic.replication.factor", SHORT, "3", "2.4", "Replication factor of the heartbeats topic."),
    _flow("name", STRING, None, "2.4", "Name of a connector.", "there are no connectors here"),
    _flow("connector.class", STRING, None, "2.4", "Class of a connector.", "there are no connectors here"),
    Definition("tasks.max", INT, "1", Scope.FLOW, "2.4", "Most tasks that copy at the same time.", minimum=1),
    _flow(
        "tasks.max.enforce",
        BOOLEAN,
        "true",
        "3.8",
        "Whether Connect refuses more tasks than `tasks.max`.",
        "tasks.max is always kept",
    ),
    *(
        _flow(f"{side}.converter", CLASS, _BYTES, "2.4", f"How Connect's transforms read and write {side}s. {_MORE}")
        for side in ("key", "value", "header")
    ),
    _flow("transforms", LIST, "", "2.4", f"Names of Connect's single message transforms, in their order. {_SUB_KEYS}"),
    _flow("predicates", LIST, "", "2.6", f"Names of the predicates that they ask. {_SUB_KEYS}"),
    _flow(
        "config.action.reload",
        STRING,
        "restart",
        "2.4",
        "What Connect does when a provider's value changes.",
        "every run reads its configuration anew",
    ),
    _flow("errors.retry.timeout", LONG, "0", "2.4", "Longest time of Connect's retries.", _NO_CONNECT_RETRIES),
    _flow("errors.retry.delay.max.ms", LONG, "60000", "2.4", "Longest pause between them.", _NO_CONNECT_RETRIES),
    _flow(
        "errors.tolerance",
        STRING,
        "none",
        "2.4",
        "Whether Connect skips records with errors.",
        "no record is ever skipped; a partition that cannot go on is reported and stops",
    ),
    _flow("errors.log.enable", BOOLEAN, "false", "2.4", "Whether Connect logs errors.", _NO_CONNECT_RETRIES),
    _flow("errors.log.include.messages", BOOLEAN, "false", "2.4", "Also their records.", _NO_CONNECT_RETRIES),
    _flow_only(
        "exactly.once.support", STRING, "requested", "3.3", "Demands exactly-once of Connect.", _ALWAYS_EXACTLY_ONCE
    ),
    _flow_only("transaction.boundary", STRING, "poll", "3.3", "Where its transactions end.", _ALWAYS_EXACTLY_ONCE),
    _flow_only(
        "transaction.boundary.interval.ms", LONG, None, "3.3", "Interval of its transactions.", _ALWAYS_EXACTLY_ONCE
    ),
    _flow_only(
        "offsets.storage.topic",
        STRING,
        None,
        "3.3",
        "A topic of its own for the positions of one connector.",
        "positions are kept in the target's offset.storage.topic",
    ),
)

WORKER = (
    Definition(
        "offset.storage.topic",
        STRING,
        "mm2-offsets.<source>.internal",
        Scope.WORKER,
        "2.4",
        "The topic on the target that holds the position of every partition, in MM2's format.",
    ),
    Definition(
        "offset.storage.partitions", INT, "25", Scope.WORKER, "2.4", "Its partitions; -1 takes the broker's default."
    ),
    Definition(
        "offset.storage.replication.factor",
        SHORT,
        "3",
        Scope.WORKER,
        "2.4",
        "Its replication factor; -1 takes the broker's default.",
    ),
    Definition(
        "offset.flush.interval.ms",
        LONG,
        "60000",
        Scope.CLUSTER,
        "2.4",
        "How often positions are stored while a run copies, milliseconds.",
    ),
    Definition(
        "exactly.once.source.support",
        STRING,
        "disabled",
        Scope.CLUSTER,
        "3.3",
        "`enabled` writes in transactions what can be exactly-once in no other way: topics that are merged, or go "
        "through a transform which is not deterministic or may send records elsewhere. All else is exactly-once "
        f"anyway. {_MORE}",
        choices=("disabled", "preparing", "enabled"),
        any_case=True,
    ),
)

MM2_BY_NAME = {definition.name: definition for definition in (*TOP_LEVEL, *MM2_FLOW)}
WORKER_BY_NAME = {definition.name: definition for definition in WORKER}
