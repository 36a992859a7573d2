"""Files of our own making that hold what published MirrorMaker 2 files hold, mistakes included."""

from __future__ import annotations

from collections.abc import Mapping

_AB = "clusters = A, B\nA.bootstrap.servers = a1:9092,a2:9092\nB.bootstrap.servers = b1:9092\nA->B.enabled = true\n"
_NAMED = (
    "clusters = source, target\nsource.bootstrap.servers = s:9092\ntarget.bootstrap.servers = t:9092\n"
    "source->target.enabled = true\n"
)
_PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
_SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
_ONES = "".join(
    f"{name}.replication.factor = 1\n"
    for name in (
        "checkpoints.topic",
        "heartbeats.topic",
        "offset-syncs.topic",
        "offset.storage",
        "status.storage",
        "config.storage",
    )
)

#: By what each is about.
FILES: Mapping[str, str] = {
    "kafka's own example": _AB + "A->B.topics = .*\nB->A.enabled = true\nB->A.topics = .*\nreplication.factor = 1\n"
    f"{_ONES}# replication.policy.separator = _\n# sync.topic.acls.enabled = false\n",
    "kafka 2.4's example without its third cluster": _AB + "C.bootstrap.servers = c:9092\nC.security.protocol = SSL\n"
    "A->B.topics = foo-.*\nB->C.enabled = true\nB->C.topics = bar-.*\nC.replication.factor = 3\n",
    "active and standby": _NAMED + "source->target.topics = orders, payments.*\ntarget->source.enabled = false\n",
    "three clusters in a ring": "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
    "C.bootstrap.servers = c:1\nA->B.enabled = true\nB->C.enabled = true\nC->A.enabled = true\n",
    "hub and spoke": "clusters = hub, east, west\nhub.bootstrap.servers = h:1\neast.bootstrap.servers = e:1\n"
    "west.bootstrap.servers = w:1\neast->hub.enabled = true\nwest->hub.enabled = true\nhub->east.enabled = true\n"
    "hub->east.topics = shared\nemit.heartbeats.enabled = false\n",
    "identity": _NAMED + "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n",
    "names kept by nothing": _AB + "replication.policy.separator =\nsource.cluster.alias =\ntarget.cluster.alias =\n",
    "names kept by nothing, with groups": _AB
    + "A->B.topics = ${TOPICS_ARE_HERE:x}\n".replace("${TOPICS_ARE_HERE:x}", "t.*")
    + "replication.policy.separator =\nsource.cluster.alias = \ntarget.cluster.alias =\ngroup.id = g\nA.group.id = g\n"
    "B.group.id = g\nconsumer.group.id = g\nconnector.client.config.override.policy=All\n",
    "empty separator": _NAMED + "replication.policy.separator = \n",
    "an alias of its own": _NAMED + "source.cluster.alias = prod\ntarget.cluster.alias = dr\n",
    "alias of a flow": _NAMED + "source->target.source.cluster.alias = prod\n",
    "another separator": _NAMED + "replication.policy.separator = _\n",
    "separator with a blank": _NAMED + "replication.policy.separator = - \n",
    "internal separator": _AB + "replication.policy.separator = __\n"
    "replication.policy.internal.topic.separator.enabled = false\n",
    "tls": _AB + "A.security.protocol = SSL\nA.ssl.truststore.location = /t.jks\nA.ssl.truststore.password = p\n"
    "A.ssl.keystore.location = /k.jks\nA.ssl.keystore.password = p\nA.ssl.key.password = p\n"
    "A.ssl.endpoint.identification.algorithm =\n",
    "tls for all": _AB + "security.protocol = SSL\nssl.truststore.location = /t.jks\nssl.truststore.password = p\n",
    "scram": _AB + f"A.security.protocol = SASL_SSL\nA.sasl.mechanism = SCRAM-SHA-512\nA.sasl.jaas.config = {_SCRAM}\n",
    "continued jaas": _AB
    + "A.security.protocol=SASL_PLAINTEXT\nA.sasl.mechanism=PLAIN\nA.sasl.jaas.config="
    + _PLAIN.replace(" username", " \\\n    username").replace(" password", " \\\n    password")
    + "\n",
    "event hubs": _NAMED + "target.security.protocol = SASL_SSL\ntarget.sasl.mechanism = PLAIN\n"
    f"target.sasl.jaas.config = {_PLAIN}\nconnections.max.idle.ms = 180000\nmetadata.max.age.ms = 180000\n"
    "target.producer.security.protocol = SASL_SSL\n",
    "tuned": _AB + "tasks.max = 8\nA->B.producer.compression.type = zstd\nA->B.producer.batch.size = 32768\n"
    "A->B.consumer.max.poll.records = 2000\nA.consumer.fetch.min.bytes = 1048576\nB.producer.linger.ms = 100\n"
    "B.producer.acks = all\nB.producer.max.request.size = 20971520\nB.offset.flush.timeout.ms = 10000\n",
    "overrides": _AB + "A->B.producer.override.linger.ms = 5\nA->B.consumer.override.fetch.min.bytes = 1\n"
    "producer.override.compression.type = lz4\nconsumer.auto.offset.reset = latest\n",
    "clients of both sides": _AB + "security.protocol = SSL\nA.security.protocol = PLAINTEXT\n"
    "A.producer.security.protocol = SSL\nA.ssl.key.password = a\nA.producer.ssl.key.password = p\n"
    "B.ssl.key.password = b\nA->B.admin.retries = 1\nB.admin.request.timeout.ms = 1\nadmin.timeout.ms = 5\n"
    "consumer.poll.timeout.ms = 5\n",
    "settings of a flow's consumer": _AB + "A.consumer.fetch.min.bytes = 1\nA->B.consumer.fetch.min.bytes = 2\n"
    "A->B.consumer.fetch.max.wait.ms = 2\nA.consumer.enable.auto.commit = true\n"
    "A.consumer.max.poll.records = 4\nA->B.source.consumer.max.poll.records = 3\n",
    "settings of a flow's producer": _AB + "offset-syncs.topic.location = target\nB.producer.linger.ms = 1\n"
    "A->B.producer.linger.ms = 2\nA->B.target.producer.batch.size = 3\nB.producer.batch.size = 4\n"
    "A->B.producer.override.linger.ms = 5\nA.producer.max.block.ms = 4\n",
    "settings of the worker": _AB + "offset.storage.replication.factor = 1\nB.offset.storage.replication.factor = 2\n"
    "A.offset.storage.partitions = 7\nA->B.offset.storage.partitions = 8\nB.offset.flush.interval.ms = 10\n"
    "offset.flush.interval.ms = 20\n",
    "names that count under a flow only": _AB + "use.defaults.from = source\nexactly.once.support = required\n"
    "A->B.use.defaults.from = target\nreplication.policy.my.option = 1\nmy.option = 2\nA->B.my.option = 3\n",
    "first start": _AB + "A.consumer.auto.offset.reset = latest\nA.consumer.isolation.level = read_committed\n",
    "first start by duration": _AB + "A.consumer.auto.offset.reset = by_duration:P7D\n",
    "old names": _AB + "topics.blacklist = foo.*\nA->B.groups.blacklist = console-.*\n",
    "old names without a regex": _AB + "topics.blacklist = *\ngroups.blacklist = *\n",
    "quotes": _AB + 'topics.exclude = "*.internal,__.*"\n'.replace('"*', '"'),
    "lost backslashes": _AB
    + "A->B.topics = products\\..*, orders\\..*\ntopics.exclude = .*[\\-\\.]internal, .*\\.replica, __.*\n",
    "kept backslashes": _AB
    + "A->B.topics = products\\\\..*\ntopics.exclude = .*[\\\\-\\\\.]internal, .*\\\\.replica\n",
    "comments behind values": _AB + "tasks.max = 4 \nA->B.topics = orders, payments  # both\n",
    "windows lines": _AB.replace("\n", "\r\n") + "A->B.topics = orders\r\n",
    "blank behind true": _AB + "B->A.enabled = true \n",
    "colons and blanks": "clusters: A, B\nA.bootstrap.servers a:1\nB.bootstrap.servers : b:1\nA->B.enabled true\n",
    "lines of all forms": _AB + "e1=b\ne2:b\ne3 b\n  e4\t=\f b\ne5==b\ne6\ne7=\ne8= b  \ne9=b # no comment\n"
    "f1=.*[\\\\-\\\\.]internal\nf2=.*[\\-\\.]internal\nf\\ 3=c\nf\\:4=c\nf5=\\u00e9\\t\\n\n"
    "# one\n  ! two\n\n   \ng1 = a, \\\n    b, \\\n\tc\ng2=x\\\\\ng3=y\n",
    "nothing at the end": _AB + "A->B.topics = orders",
    "a backslash at the end": _AB + "\\",
    "no heartbeats": _AB + "emit.heartbeats.enabled = false\nemit.checkpoints.enabled = false\n",
    "syncs on the target": _AB + "offset-syncs.topic.location = target\nsync.group.offsets.enabled = true\n"
    "sync.group.offsets.interval.seconds = 10\nemit.checkpoints.interval.seconds = 10\n",
    "fictitious": _AB + "readahead.queue.capacity = 500\nheartbeats.topic.retention.ms = 1\nemit.heartbeats = true\n"
    "max.tasks = 3\nheartbeats.enabled = true\nreplication.flows = A->B\nnum.streams = 2\nmy.company.note = 1\n",
    "names of brokers": _AB
    + "offsets.topic.replication.factor = 1\nmin.insync.replicas = 1\nzookeeper.connect = z:2181\n",
    "an exactly once of connect": _AB
    + "B.exactly.once.source.support = enabled\nA->B.exactly.once.support = required\n"
    "dedicated.mode.enable.internal.rest = true\nlisteners = http://localhost:8080\n",
    "lookbehind": _AB + "A->B.topics = .*(?<!-dlq|-retry), orders.*\ngroups = (?!tmp-).*\n",
    "a comma in a regex": _AB + "A->B.topics = order[0-9]{1,3}\n",
    "flags": _AB + "A->B.topics = (?i)orders-.*\nA->B.groups = \n",
    "a leftover flow": _AB + "north->south.enabled = true\nA->B.what.ever = 1\nA.what.ever = 1\n",
    "an empty list": _AB + "A->B.topics =\n",
    "all pairs": "clusters = A, B\nbootstrap.servers = x:9092\nenabled = true\ntopics = one\n",
    "twice": _AB + "tasks.max = 1\ntasks.max = 2\n",
    "dots in aliases": "clusters = us.east, us.west\nus.east.bootstrap.servers = a:1\nus.west.bootstrap.servers = b:1\n"
    "us.east->us.west.enabled = true\n",
    "lines of JSON": _AB
    + '"replication.policy.separator": ""\n"source.cluster.alias": "",\n"target.cluster.alias": "",\n',
    "no offset reset": _AB + "A->B.consumer.auto.offset.reset = none\nA.consumer.auto.offset.reset = none\n",
    "listener names": _AB + "A.bootstrap.servers = my-listener://h:1, ::1:9092\n",
}
