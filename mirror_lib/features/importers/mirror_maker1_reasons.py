"""Why a setting of MirrorMaker 1 is not used in a file of this project, setting by setting.

The names are those of the Java consumer and producer of Kafka 0.8 to 3.9, of the deserializers and serializers that
MirrorMaker 1 set itself, and of the command line of `kafka-mirror-maker.sh`.
"""

from __future__ import annotations

from mirror_lib.config.settings.kafka_names import BY_CLIENT

_NO_GROUP = "no consumer group is used here: the plan of a run assigns partitions to tasks"
_NO_COMMITS = "nothing is committed on the source: positions are stored on the target (mirror position show)"
_NO_POLLING = "a run ends when it has caught up: there is no poll loop"
_READING = (
    "fetch sizes are set by mirror.fetch.max.bytes, mirror.fetch.partition.max.bytes and mirror.task.memory.bytes"
)
_BATCHES = (
    "record batches are forwarded unchanged; small ones are combined up to mirror.batch.max.bytes, regardless of time"
)
_BYTES = "record batches are copied as bytes: keys and values are not decoded"
_PARTITIONS = "every record keeps its partition number; in MirrorMaker 1 the producer chose one"
_CODEC = "every record batch keeps its codec"
_ONCE = "every record is written once and in order, with acks=all, regardless of this setting"
_RETRIES = "transient errors are retried for mirror.retry.max.seconds"
_TUNING = "it tunes Java's network client, which is not used here"
_METRICS = "there is no JVM that could report metrics"
_HOOK = "Java classes cannot run here"
_OLD_CONSUMER = "it belongs to the consumer of Kafka 0.8, which kept its offsets in ZooKeeper"
_OLD_PRODUCER = "it belongs to the producer of Kafka 0.8"

_OF_EVERY_CLIENT = {
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "auto.include.jmx.reporter": _METRICS,
    "enable.metrics.push": _METRICS,
    "interceptor.classes": _HOOK,
    "security.providers": _HOOK,
}

_OF_CONSUMER = {
    "group.id": "progress is stored as positions on the target, no longer as offsets of this group on the source",
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "internal.leave.group.on.close": _NO_GROUP,
    "enable.auto.commit": _NO_COMMITS,
    "auto.commit.interval.ms": _NO_COMMITS,
    "max.poll.interval.ms": _NO_POLLING,
    "max.poll.records": _NO_POLLING,
    "fetch.min.bytes": _READING,
    "fetch.max.bytes": _READING,
    "fetch.max.wait.ms": _READING,
    "max.partition.fetch.bytes": _READING,
    "receive.buffer.bytes": _READING,
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "check.crcs": "the checksum of every batch is always validated",
    "exclude.internal.topics": "topics whose names begin with two underscores are never copied",
    "allow.auto.create.topics": "the source's topics are listed, so no topic is auto-created",
    "zookeeper.connect": f"{_OLD_CONSUMER}; write bootstrap.servers",
    "zookeeper.connection.timeout.ms": _OLD_CONSUMER,
    "zookeeper.session.timeout.ms": _OLD_CONSUMER,
    "zookeeper.sync.time.ms": _OLD_CONSUMER,
    "offsets.storage": _OLD_CONSUMER,
    "dual.commit.enabled": _OLD_CONSUMER,
    "auto.commit.enable": _OLD_CONSUMER,
    "consumer.id": _OLD_CONSUMER,
    "consumer.timeout.ms": _OLD_CONSUMER,
    "fetch.message.max.bytes": _OLD_CONSUMER,
    "num.consumer.fetchers": _OLD_CONSUMER,
    "queued.max.message.chunks": _OLD_CONSUMER,
    "rebalance.max.retries": _OLD_CONSUMER,
    "rebalance.backoff.ms": _OLD_CONSUMER,
    "socket.timeout.ms": _OLD_CONSUMER,
    "socket.receive.buffer.bytes": _OLD_CONSUMER,
}

_OF_PRODUCER = {
    "acks": _ONCE,
    "enable.idempotence": _ONCE,
    "max.in.flight.requests.per.connection": "write mirror.produce.max.in.flight; order is kept with up to 5",
    "transactional.id": "transactional ids are derived from flow, topic and partition",
    "transaction.timeout.ms": "there are no transactions on the target",
    "retries": _RETRIES,
    "delivery.timeout.ms": _RETRIES,
    "max.block.ms": _RETRIES,
    "batch.size": _BATCHES,
    "linger.ms": _BATCHES,
    "buffer.memory": "memory is limited by mirror.task.memory.bytes",
    "compression.type": _CODEC,
    "compression.gzip.level": _CODEC,
    "compression.lz4.level": _CODEC,
    "compression.zstd.level": _CODEC,
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "partitioner.class": _PARTITIONS,
    "partitioner.ignore.keys": _PARTITIONS,
    "partitioner.adaptive.partitioning.enable": _PARTITIONS,
    "partitioner.availability.timeout.ms": _PARTITIONS,
    "send.buffer.bytes": _BATCHES,
    "metadata.broker.list": f"{_OLD_PRODUCER}; write bootstrap.servers",
    "producer.type": _OLD_PRODUCER,
    "request.required.acks": _OLD_PRODUCER,
    "compression.codec": _OLD_PRODUCER,
    "serializer.class": _OLD_PRODUCER,
    "key.serializer.class": _OLD_PRODUCER,
    "message.send.max.retries": _OLD_PRODUCER,
    "queue.buffering.max.ms": _OLD_PRODUCER,
    "queue.buffering.max.messages": _OLD_PRODUCER,
    "batch.num.messages": _OLD_PRODUCER,
}

_REASONS = {
    "consumer": _OF_EVERY_CLIENT | _OF_CONSUMER,
    "producer": _OF_EVERY_CLIENT | _OF_PRODUCER,
    "admin": _OF_EVERY_CLIENT | {"retries": _RETRIES},
}

#: Options of `kafka-mirror-maker.sh` that are only listed.
OPTION_REASONS = {
    "abort.on.send.failure": (
        "a partition that cannot be written always stops, and the others continue. If this was false, MirrorMaker 1 "
        "dropped and counted such records: mirror.poison.policy=quarantine keeps them in a topic, skip skips them"
    ),
    "message.handler": (
        "record batches are copied unchanged. A handler that renamed topics is replaced by mirror.topics.rename or "
        "mirror.topics.rename.regex; one that changed or dropped records has no counterpart"
    ),
    "message.handler.args": "it belongs to message.handler",
    "consumer.rebalance.listener": _NO_GROUP,
    "rebalance.listener.args": _NO_GROUP,
    "new.consumer": "newer versions of MirrorMaker 1 ignored it",
}


def reason(kind: str, name: str) -> str:
    """Return why a setting of the consumer's or the producer's file is not used here."""
    known = _REASONS[kind].get(name)
    if known is not None:
        return known
    if name in BY_CLIENT[kind]:
        return _TUNING
    return f"it is not a setting of Kafka's {kind}: Java's client ignored it, or a custom class read it"
