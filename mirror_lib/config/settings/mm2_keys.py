"""Every setting of MM2 4.x.

The rows restate the ConfigDefs of `MirrorMakerConfig`, `MirrorConnectorConfig`, `MirrorSourceConfig`,
`MirrorCheckpointConfig`, `MirrorHeartbeatConfig` and the filters. Client and worker names are in `kafka_names`, names
of other versions and of vendor documents in `unknown_names`, the project's own keys in `mirror_keys`.
"""

from __future__ import annotations

from mirror_lib.config.settings.definition import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    Definition,
    Scope,
)
from mirror_lib.topology.java_types import ValueType

_JAVA = "org.apache.kafka.connect.mirror"


def _flow(name: str, kind: ValueType, default: str | None, since: str, meaning: str, instead: str = "") -> Definition:
    return Definition(name, kind, default, Scope.FLOW, since, meaning, instead)


def _flow_only(name: str, kind: ValueType, default: str | None, since: str, meaning: str, instead: str) -> Definition:
    return Definition(name, kind, default, Scope.FLOW_ONLY, since, meaning, instead)


_NO_REST = "there are no Connect workers here, so nothing listens"
_NO_CONNECT_RETRIES = "failed partitions are reported individually and retried by the next run"
_ALWAYS_EXACTLY_ONCE = "the copy is always exactly-once and needs no transactions on the target"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_MORE = "See [transforms.md](transforms.md)."
_SUB_KEYS = f"Their own settings are allowed as `A->B.` only. {_MORE}"

TOP_LEVEL = (
    Definition("clusters", LIST, None, Scope.TOP, "2.4", "Aliases of all clusters. Required."),
    Definition(
        "config.providers",
        LIST,
        "",
        Scope.TOP,
        "2.4",
        "Names of the providers that resolve `${name:path:key}` in values; each needs "
        "`config.providers.<name>.class` and may have `config.providers.<name>.param.*`.",
    ),
    Definition(
        "dedicated.mode.enable.internal.rest",
        BOOLEAN,
        "false",
        Scope.TOP,
        "3.5",
        "Starts the REST server for communication between the workers of a dedicated cluster.",
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
        "Brokers of every cluster without its own `bootstrap.servers`.",
    ),
)

_SWITCH_NOTE = " If `.enabled` is false, the step is disabled regardless of the interval."

MM2_FLOW = (
    _flow("enabled", BOOLEAN, "false", "2.4", "If true, topics and group positions of this flow are replicated."),
    _flow(
        "source.cluster.alias",
        STRING,
        None,
        "2.4",
        "Alias of the source in remote topics, positions, checkpoints and heartbeats; by default its name in the "
        "flow. At the top level it applies to all flows.",
    ),
    _flow(
        "target.cluster.alias",
        STRING,
        None,
        "2.4",
        "Alias of the target in offset-syncs, heartbeats and loop detection; by default its name in the flow.",
    ),
    _flow("admin.timeout.ms", LONG, "60000", "2.4", "Timeout of an administrative request in milliseconds."),
    _flow(
        "replication.policy.class",
        CLASS,
        f"{_JAVA}.DefaultReplicationPolicy",
        "2.4",
        "Policy for remote topic names: Kafka's `DefaultReplicationPolicy` or `IdentityReplicationPolicy` by Java "
        "class name, or a Python class by dotted path.",
    ),
    _flow(
        "replication.policy.separator",
        STRING,
        ".",
        "2.4",
        "Separator between alias and topic. Used as written, including trailing spaces.",
    ),
    _flow(
        "replication.policy.internal.topic.separator.enabled",
        BOOLEAN,
        "true",
        "3.6",
        "If false, internal topics keep `.` in their names although another separator is set (KIP-949).",
    ),
    _flow(
        "forwarding.admin.class",
        CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "3.4",
        "Java class that MM2 uses for administrative requests (KIP-787).",
        "administrative requests go directly to the clusters",
    ),
    _flow(
        "metric.reporters",
        LIST,
        "org.apache.kafka.common.metrics.JmxReporter",
        "2.4",
        "Java classes that publish metrics.",
        "there is no JVM that could report metrics",
    ),
    _flow("emit.offset-syncs.enabled", BOOLEAN, "true", "3.9", "If true, offset-syncs are emitted (KIP-1031)."),
    Definition(
        "offset-syncs.topic.location",
        STRING,
        "source",
        Scope.FLOW,
        "3.0",
        "Cluster of the offset-syncs topic: `source` or `target` (KIP-716).",
        choices=("source", "target"),
    ),
    _flow(
        "topic.filter.class",
        CLASS,
        f"{_JAVA}.DefaultTopicFilter",
        "2.4",
        "Topic filter: Kafka's class, or a Python class by dotted path.",
    ),
    _flow(
        "consumer.poll.timeout.ms",
        LONG,
        "1000",
        "2.4",
        "Poll timeout of MM2's consumer.",
        "a run ends when it has caught up, so nothing polls for new records",
    ),
    _flow("topics", LIST, ".*", "2.4", "Topics to replicate: names or Java regexes that match the whole name."),
    _flow(
        "topics.exclude",
        LIST,
        r"mm2.*\.internal, .*\.replica, __.*",
        "2.7",
        "Topics to exclude; takes precedence over `topics`. A configured list replaces the default.",
    ),
    _flow(
        "config.properties.exclude",
        LIST,
        r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
        r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
        r"min\.insync\.replicas",
        "2.7",
        "Topic configs that are not synchronized. A configured list replaces the default.",
    ),
    _flow(
        "config.property.filter.class",
        CLASS,
        f"{_JAVA}.DefaultConfigPropertyFilter",
        "2.4",
        "Filter of topic configs: Kafka's class, or a Python class by dotted path.",
    ),
    _flow_only(
        "use.defaults.from",
        STRING,
        "target",
        "3.5",
        "With `source` the source's built-in defaults of topic configs are copied too (KIP-894); any other value "
        "means target.",
        "",
    ),
    _flow("refresh.topics.enabled", BOOLEAN, "true", "2.4", "If true, new topics and partitions are detected."),
    _flow(
        "refresh.topics.interval.seconds", LONG, "600", "2.4", "Interval of topic detection in seconds." + _SWITCH_NOTE
    ),
    _flow("sync.topic.configs.enabled", BOOLEAN, "true", "2.4", "If true, topic configs are synchronized."),
    _flow(
        "sync.topic.configs.interval.seconds",
        LONG,
        "600",
        "2.4",
        "Interval of topic config synchronization in seconds.",
    ),
    _flow("sync.topic.acls.enabled", BOOLEAN, "true", "2.4", "If true, topic ACLs are synchronized."),
    _flow("sync.topic.acls.interval.seconds", LONG, "600", "2.4", "Interval of topic ACL synchronization in seconds."),
    _flow(
        "replication.factor",
        INT,
        "2",
        "2.4",
        "Replication factor of new remote topics; -1 uses the target's default. The source's value is never copied.",
    ),
    _flow("offset-syncs.topic.replication.factor", SHORT, "3", "2.4", "Replication factor of the offset-syncs topic."),
    _flow(
        "offset.lag.max",
        LONG,
        "100",
        "2.4",
        "Maximum number of records by which an offset-sync may be outdated before a new one is emitted.",
    ),
    _flow(
        "heartbeats.replication.enabled",
        BOOLEAN,
        "true",
        "4.0",
        "If true, heartbeats topics are replicated regardless of the topic filter (KIP-1089).",
    ),
    _flow("groups", LIST, ".*", "2.4", "Consumer groups to replicate: names or Java regexes."),
    _flow(
        "groups.exclude",
        LIST,
        "console-consumer-.*, connect-.*, __.*",
        "2.7",
        "Groups to exclude; takes precedence over `groups`. A configured list replaces the default.",
    ),
    _flow(
        "group.filter.class",
        CLASS,
        f"{_JAVA}.DefaultGroupFilter",
        "2.4",
        "Group filter: Kafka's class, or a Python class by dotted path.",
    ),
    _flow("refresh.groups.enabled", BOOLEAN, "true", "2.4", "If true, new groups are detected."),
    _flow("refresh.groups.interval.seconds", LONG, "600", "2.4", "Interval of group detection in seconds."),
    _flow(
        "emit.checkpoints.enabled",
        BOOLEAN,
        "true",
        "2.4",
        "If true, checkpoints (translated group offsets) are emitted.",
    ),
    _flow("emit.checkpoints.interval.seconds", LONG, "60", "2.4", "Interval of checkpoints in seconds."),
    _flow(
        "sync.group.offsets.enabled",
        BOOLEAN,
        "false",
        "2.7",
        "If true, translated offsets are committed for the groups on the target (KIP-545); needs checkpoints.",
    ),
    _flow(
        "sync.group.offsets.interval.seconds", LONG, "60", "2.7", "Interval of group offset synchronization in seconds."
    ),
    _flow("checkpoints.topic.replication.factor", SHORT, "3", "2.4", "Replication factor of the checkpoints topic."),
    _flow(
        "emit.heartbeats.enabled",
        BOOLEAN,
        "true",
        "2.4",
        "If true, heartbeats are emitted to the target, also by flows that are not enabled.",
    ),
    _flow("emit.heartbeats.interval.seconds", LONG, "1", "2.4", "Interval of heartbeats in seconds."),
    _flow("heartbeats.topic.replication.factor", SHORT, "3", "2.4", "Replication factor of the heartbeats topic."),
    _flow("name", STRING, None, "2.4", "Name of a connector.", "there are no connectors here"),
    _flow("connector.class", STRING, None, "2.4", "Class of a connector.", "there are no connectors here"),
    Definition("tasks.max", INT, "1", Scope.FLOW, "2.4", "Maximum number of tasks that copy in parallel.", minimum=1),
    _flow(
        "tasks.max.enforce",
        BOOLEAN,
        "true",
        "3.8",
        "If true, Connect enforces `tasks.max`.",
        "tasks.max is always enforced",
    ),
    *(
        _flow(f"{side}.converter", CLASS, _BYTES, "2.4", f"Converter of Connect for {side}s in transforms. {_MORE}")
        for side in ("key", "value", "header")
    ),
    _flow("transforms", LIST, "", "2.4", f"Names of Connect's single message transforms, in order. {_SUB_KEYS}"),
    _flow("predicates", LIST, "", "2.6", f"Names of the predicates of the transforms. {_SUB_KEYS}"),
    _flow(
        "config.action.reload",
        STRING,
        "restart",
        "2.4",
        "Connect's reaction to a changed value of a config provider.",
        "every run reads its configuration again",
    ),
    _flow("errors.retry.timeout", LONG, "0", "2.4", "Maximum duration of Connect's retries.", _NO_CONNECT_RETRIES),
    _flow("errors.retry.delay.max.ms", LONG, "60000", "2.4", "Maximum delay between retries.", _NO_CONNECT_RETRIES),
    _flow(
        "errors.tolerance",
        STRING,
        "none",
        "2.4",
        "Connect's error tolerance; `all` skips records with errors.",
        "no record is ever skipped; a partition that cannot continue is reported and stops",
    ),
    _flow("errors.log.enable", BOOLEAN, "false", "2.4", "If true, Connect logs errors.", _NO_CONNECT_RETRIES),
    _flow(
        "errors.log.include.messages",
        BOOLEAN,
        "false",
        "2.4",
        "If true, Connect logs the records of errors too.",
        _NO_CONNECT_RETRIES,
    ),
    _flow_only(
        "exactly.once.support",
        STRING,
        "requested",
        "3.3",
        "Connect's requirement of exactly-once support.",
        _ALWAYS_EXACTLY_ONCE,
    ),
    _flow_only("transaction.boundary", STRING, "poll", "3.3", "Transaction boundary of Connect.", _ALWAYS_EXACTLY_ONCE),
    _flow_only(
        "transaction.boundary.interval.ms", LONG, None, "3.3", "Transaction interval of Connect.", _ALWAYS_EXACTLY_ONCE
    ),
    _flow_only(
        "offsets.storage.topic",
        STRING,
        None,
        "3.3",
        "Offsets topic of a single connector.",
        "positions are stored in the target's offset.storage.topic",
    ),
)

WORKER = (
    Definition(
        "offset.storage.topic",
        STRING,
        "mm2-offsets.<source>.internal",
        Scope.WORKER,
        "2.4",
        "Topic on the target with the position of each partition, in MM2's format.",
    ),
    Definition(
        "offset.storage.partitions",
        INT,
        "25",
        Scope.WORKER,
        "2.4",
        "Number of its partitions; -1 uses the broker's default.",
    ),
    Definition(
        "offset.storage.replication.factor",
        SHORT,
        "3",
        Scope.WORKER,
        "2.4",
        "Replication factor of this topic; -1 uses the broker's default.",
    ),
    Definition(
        "offset.flush.interval.ms",
        LONG,
        "60000",
        Scope.CLUSTER,
        "2.4",
        "Interval at which positions are stored during a copy, in milliseconds.",
    ),
    Definition(
        "exactly.once.source.support",
        STRING,
        "disabled",
        Scope.CLUSTER,
        "3.3",
        "`enabled` uses transactions where exactly-once needs them: topics that are merged, or that pass a "
        "transform which is not deterministic or may route records. All other topics are exactly-once without "
        f"transactions. {_MORE}",
        choices=("disabled", "preparing", "enabled"),
        any_case=True,
    ),
)

MM2_BY_NAME = {definition.name: definition for definition in (*TOP_LEVEL, *MM2_FLOW)}
WORKER_BY_NAME = {definition.name: definition for definition in WORKER}
