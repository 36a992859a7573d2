"""Setting names of Kafka's own clients and Connect's workers, from the ConfigDefs of Kafka 4.3."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Settings that MM2 passes to every client of a cluster (`MirrorClientConfig.CLIENT_CONFIG_DEF`).
CLIENT_SET = _names(
    """
    bootstrap.servers sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    security.protocol ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain
    ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
    """
)

#: In the ConfigDefs of consumer, producer and admin client.
_EVERY_CLIENT = CLIENT_SET | _names(
    """
    client.dns.lookup client.id connections.max.idle.ms enable.metrics.push metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms security.providers
    send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    """
)

_CONSUMER = _EVERY_CLIENT | _names(
    """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack
    default.api.timeout.ms enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records partition.assignment.strategy session.timeout.ms share.acknowledgement.mode
    share.acquire.mode value.deserializer
    """
)

_PRODUCER = _EVERY_CLIENT | _names(
    """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delivery.timeout.ms enable.idempotence interceptor.classes key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.serializer
    """
)

_ADMIN = _EVERY_CLIENT | _names("bootstrap.controllers default.api.timeout.ms retries")

#: Settings that have an effect here; all others tune Java's clients.
APPLIED = CLIENT_SET | _names(
    """
    auto.offset.reset client.id client.rack isolation.level max.request.size metadata.max.age.ms request.timeout.ms
    """
)

#: Setting names of a client, by the prefix of its settings.
BY_CLIENT = {"consumer": _CONSUMER, "producer": _PRODUCER, "admin": _ADMIN}

#: `DistributedConfig` and `WorkerConfig` of Connect; set under the alias of a flow's target.
WORKER_NAMES = _EVERY_CLIENT | _names(
    """
    access.control.allow.methods access.control.allow.origin admin.listeners config.providers
    config.storage.replication.factor config.storage.topic connect.protocol
    connector.client.config.override.policy exactly.once.source.support group.id header.converter
    header.converter.type heartbeat.interval.ms inter.worker.key.generation.algorithm inter.worker.key.size
    inter.worker.key.ttl.ms inter.worker.signature.algorithm inter.worker.verification.algorithms key.converter
    listeners offset.flush.interval.ms offset.flush.timeout.ms offset.storage.partitions
    offset.storage.replication.factor offset.storage.topic plugin.discovery plugin.path plugin.version
    rebalance.timeout.ms response.http.headers.config rest.advertised.host.name rest.advertised.listener
    rest.advertised.port rest.extension.classes scheduled.rebalance.max.delay.ms session.timeout.ms
    status.storage.partitions status.storage.replication.factor status.storage.topic
    task.shutdown.graceful.timeout.ms topic.creation.enable topic.tracking.allow.reset topic.tracking.enable
    value.converter worker.sync.timeout.ms worker.unsync.backoff.ms
    """
)

#: Worker settings with a free suffix, such as `metrics.context.x` or `key.converter.x`.
WORKER_PREFIXES = (
    "config.storage.",
    "header.converter.",
    "key.converter.",
    "listeners.https.",
    "metrics.context.",
    "offset.storage.",
    "status.storage.",
    "value.converter.",
)
