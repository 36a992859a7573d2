"""Names that MM2 4.x does not know but that occur in real files: of older and newer versions, of KIP-382's text, of
vendor documents, of MirrorMaker 1, of brokers. MM2 ignores them silently; here each has a message about its effect.
"""

from __future__ import annotations

import re

_NEVER_EXISTED = "it is in KIP-382 and in vendor documents, but never existed in MM2"
_NOT_MM2 = "it is not a setting of MM2 and has no effect"
_MM1 = "it belongs to MirrorMaker 1"
_BROKER = "it is a broker setting and has no effect"

#: Valid for a name at every level of the file.
_EXACT = {
    "topics.blacklist": "it was renamed to topics.exclude in 2.7; this program still reads it, MM2 4.0 ignores it",
    "groups.blacklist": "it was renamed to groups.exclude in 2.7; this program still reads it, MM2 4.0 ignores it",
    "config.properties.blacklist": "it was renamed to config.properties.exclude in 2.7; still read here, "
    "MM2 4.0 ignores it",
    "topics.whitelist": "it was never a setting of MM2 and has no effect; write topics",
    "groups.whitelist": "it was never a setting of MM2 and has no effect; write groups",
    "use.incremental.alter.configs": "it was removed in 4.0: topic settings are always altered incrementally",
    "add.source.alias.to.metrics": "it was removed in 4.0: metrics always name the source",
    "auto.include.jmx.reporter": "it was removed in 4.0, and there is no JVM here",
    "metric.names.formats": "it chooses the names of JMX metrics (KIP-1280), and there is no JVM here",
    "readahead.queue.capacity": f"{_NEVER_EXISTED}; memory is limited by mirror.task.memory.bytes",
    "heartbeats.topic.retention.ms": f"{_NEVER_EXISTED}; the topic is compacted",
    "checkpoints.topic.retention.ms": f"{_NEVER_EXISTED}; the topic is compacted",
    "offset.syncs.topic.retention.ms": f"{_NEVER_EXISTED}; the topic is compacted",
    "offset-syncs.topic.retention.ms": f"{_NEVER_EXISTED}; the topic is compacted",
    "offset.syncs.topic.replication.factor": "it has no effect; write offset-syncs.topic.replication.factor",
    "emit.heartbeats": "it has no effect; write emit.heartbeats.enabled",
    "emit.checkpoints": "it has no effect; write emit.checkpoints.enabled",
    "sync.group.offsets": "it has no effect; write sync.group.offsets.enabled",
    "sync.topic.configs": "it has no effect; write sync.topic.configs.enabled",
    "sync.topic.acls": "it has no effect; write sync.topic.acls.enabled",
    "refresh.topics": "it has no effect; write refresh.topics.enabled",
    "refresh.groups": "it has no effect; write refresh.groups.enabled",
    "enable": "it has no effect; write enabled",
    "max.tasks": "it has no effect; write tasks.max",
    "heartbeats.enabled": "it has no effect; write emit.heartbeats.enabled",
    "heartbeat.enabled": "it has no effect; write emit.heartbeats.enabled",
    "checkpoints.enabled": "it has no effect; write emit.checkpoints.enabled",
    "checkpoint.enabled": "it has no effect; write emit.checkpoints.enabled",
    "offset-syncs.enabled": "it has no effect; write emit.offset-syncs.enabled",
    "offset.syncs.enabled": "it has no effect; write emit.offset-syncs.enabled",
    "sync.consumer.offsets.enabled": "it has no effect; write sync.group.offsets.enabled",
    "replication.enabled": "it has no effect; write <source>-><target>.enabled",
    "replication.flows": "it has no effect; write <source>-><target>.enabled = true for each flow",
    "topics.include": "it has no effect; write topics",
    "topics.regex": "it has no effect; write topics",
    "topics.pattern": "it has no effect; write topics",
    "topics.exclude.pattern": "it has no effect; write topics.exclude",
    "topicsPattern": "it belongs to Strimzi; write topics",
    "topicsExcludePattern": "it belongs to Strimzi; write topics.exclude",
    "groupsPattern": "it belongs to Strimzi; write groups",
    "groupsExcludePattern": "it belongs to Strimzi; write groups.exclude",
    "groups.include": "it has no effect; write groups",
    "topic.whitelist": "it was never a setting of MM2 and has no effect; write topics",
    "topic.blacklist": "it was never a setting of MM2 and has no effect; write topics.exclude",
    "replication.topics": f"{_NOT_MM2}; write topics",
    "offsets.topic.replication.factor": f"{_BROKER}; write offset-syncs.topic.replication.factor or "
    "offset.storage.replication.factor",
    "transaction.state.log.replication.factor": _BROKER,
    "transaction.state.log.min.isr": _BROKER,
    "min.insync.replicas": _BROKER,
    "default.replication.factor": f"{_BROKER}; write replication.factor",
    "num.partitions": f"{_BROKER}; remote topics get the source's partition count",
    "auto.create.topics.enable": f"{_BROKER}; remote topics are created by the flow",
    "log.dirs": _BROKER,
    "zookeeper.connect": _BROKER,
    "consumer.config": f"{_MM1}; set connections under the alias of the source cluster",
    "producer.config": f"{_MM1}; set connections under the alias of the target cluster",
    "num.streams": f"{_MM1}; write tasks.max",
    "whitelist": f"{_MM1}; write topics",
    "blacklist": f"{_MM1}; write topics.exclude",
    "include": f"{_MM1}; write topics, with commas between patterns",
    "offset.commit.interval.ms": f"{_MM1}; write offset.flush.interval.ms under the alias of the target cluster",
    "abort.on.send.failure": f"{_MM1}; a partition that cannot be written always stops",
    "message.handler": f"{_MM1}; record batches are copied unchanged",
    "message.handler.args": f"{_MM1}; record batches are copied unchanged",
    "consumer.rebalance.listener": f"{_MM1}; partitions are assigned by the plan of a run",
    "rebalance.listener.args": f"{_MM1}; partitions are assigned by the plan of a run",
    "source.replication.group.id": f"{_NOT_MM2}; positions are stored in mm2-offsets.<source>.internal on the target",
    "replication.internal.topic.replication.factor": f"{_NOT_MM2}; write offset-syncs.topic.replication.factor, "
    "checkpoints.topic.replication.factor, heartbeats.topic.replication.factor and offset.storage.replication.factor",
    "target.cluster.bootstrap.servers": f"{_NOT_MM2} at the top level; write <alias>.bootstrap.servers",
    "source.cluster.bootstrap.servers": f"{_NOT_MM2} at the top level; write <alias>.bootstrap.servers",
    "kafka.consumer.lag": f"{_NOT_MM2}",
    "task.assigned.partitions": "MM2 generates it for its tasks; it has no effect",
    "task.assigned.groups": "MM2 generates it for its tasks; it has no effect",
    "task.index": "MM2 generates it for its tasks; it has no effect",
}
#: Pattern, how it is displayed, sentence.
_PATTERNS = (
    (
        re.compile(r"(?:emit|sync|refresh)\..+\.interval\.(?:ms|minutes)"),
        "emit|sync|refresh.*.interval.ms",
        "it has no effect; MM2 uses seconds: write the same with .interval.seconds",
    ),
    (
        re.compile(r"(?:(?:source|target)\.)?cluster\.(?:bootstrap\.servers|security\.protocol|sasl\..+|ssl\..+)"),
        "source.cluster.*, target.cluster.*",
        "only flows and connectors have this form; write security.protocol, sasl.* and ssl.* under the alias",
    ),
    (
        re.compile(r"cluster\..+\.brokers(?:\.list)?"),
        "cluster.*.brokers.list",
        "it is in drafts of KIP-382, but never existed in MM2; write <alias>.bootstrap.servers",
    ),
    (
        re.compile(r"source\.replication\.topic\..+"),
        "source.replication.topic.*",
        f"{_NOT_MM2}; topics are renamed by mirror.topics.rename=source:target; `mirror config import-topics` "
        "converts the setting",
    ),
    (
        re.compile(r"errors\.deadletterqueue\..+"),
        "errors.deadletterqueue.*",
        "only sink connectors have dead letter queues; it has no effect",
    ),
    (
        re.compile(r"topic\.creation\..+"),
        "topic.creation.*",
        "it has no effect: remote topics get the source's partition count and replication.factor",
    ),
)
#: Old names that this program applies.
HONOURED = frozenset({"topics.blacklist", "groups.blacklist", "config.properties.blacklist"})


def foreign(name: str) -> str | None:
    """Return what happens with a name of another version or dialect; None for other names."""
    if name in _EXACT:
        return _EXACT[name]
    return next((sentence for pattern, _, sentence in _PATTERNS if pattern.fullmatch(name)), None)


def foreign_names() -> tuple[tuple[str, str], ...]:
    """Return all such names with their sentences, for the documentation."""
    return (*_EXACT.items(), *((shown, sentence) for _, shown, sentence in _PATTERNS))
