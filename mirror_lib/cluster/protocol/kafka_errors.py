"""Maps Kafka's error codes to the project's errors; the only place that does."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_lib.cluster.protocol.api_names import api_name, how_without, key_in_librdkafka_text
from mirror_lib.cluster.protocol.error_codes import RETRIABLE, ErrorCode, LocalCode
from mirror_lib.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerUnreachableError,
    ClusterError,
    CorruptBatchError,
    FencedError,
    MirrorError,
    OffsetOutOfRangeError,
    RecordRefusedError,
    RecordTooLargeError,
    TopicMissingError,
    TransientError,
    Where,
)
from mirror_lib.printable import printable
from mirror_lib.topology.access import Grant, Resource

if TYPE_CHECKING:
    # Executors use this module without loading confluent-kafka.
    from confluent_kafka import KafkaError


class TopicExistsError(ClusterError):
    """The topic to create already exists."""

    reason = "topic-exists"


class UnsupportedRequestError(ClusterError):
    """The broker does not support the request: it is too old, or a managed service has disabled it."""

    reason = "unsupported"
    # Only another broker, or a setting that does without the API, changes the response.
    exit_code = 3


class RequestRefusedError(ClusterError):
    """The cluster rejects the request itself: a value, a count or a policy forbids it."""

    reason = "request-refused"


class PolicyViolationError(RequestRefusedError):
    """A policy of the cluster rejects a topic or its configs (Java `PolicyViolationException`)."""


class OperationTooLargeError(RequestRefusedError):
    """The operation exceeds the controller's limit for changes in one request."""


class SecurityDisabledError(ClusterError):
    """The cluster has no authorizer, and thus no ACLs."""

    reason = "security-disabled"
    exit_code = 3


_KINDS: dict[int, type[ClusterError]] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.CORRUPT_MESSAGE: CorruptBatchError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: TopicMissingError,
    ErrorCode.UNKNOWN_TOPIC_ID: TopicMissingError,
    ErrorCode.INCONSISTENT_TOPIC_ID: TopicMissingError,
    LocalCode.UNKNOWN_TOPIC: TopicMissingError,
    LocalCode.UNKNOWN_PARTITION: TopicMissingError,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLargeError,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLargeError,
    ErrorCode.INVALID_RECORD: RecordRefusedError,
    ErrorCode.INVALID_TIMESTAMP: RecordRefusedError,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: RecordRefusedError,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: RecordRefusedError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: AuthenticationError,
    ErrorCode.ILLEGAL_SASL_STATE: AuthenticationError,
    ErrorCode.SASL_AUTHENTICATION_FAILED: AuthenticationError,
    LocalCode.AUTHENTICATION: AuthenticationError,
    LocalCode.SSL: AuthenticationError,
    ErrorCode.INVALID_PRODUCER_EPOCH: FencedError,
    ErrorCode.PRODUCER_FENCED: FencedError,
    LocalCode.FENCED: FencedError,
    LocalCode.TRANSPORT: BrokerUnreachableError,
    LocalCode.RESOLVE: BrokerUnreachableError,
    LocalCode.ALL_BROKERS_DOWN: BrokerUnreachableError,
    LocalCode.TIMED_OUT: BrokerUnreachableError,
    LocalCode.TIMED_OUT_QUEUE: BrokerUnreachableError,
    LocalCode.MESSAGE_TIMED_OUT: BrokerUnreachableError,
    LocalCode.WAIT_COORDINATOR: TransientError,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExistsError,
    ErrorCode.SECURITY_DISABLED: SecurityDisabledError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedRequestError,
    LocalCode.UNSUPPORTED_FEATURE: UnsupportedRequestError,
    ErrorCode.INVALID_PARTITIONS: RequestRefusedError,
    ErrorCode.INVALID_REPLICATION_FACTOR: RequestRefusedError,
    ErrorCode.INVALID_CONFIG: RequestRefusedError,
    ErrorCode.INVALID_TOPIC_EXCEPTION: RequestRefusedError,
    ErrorCode.INVALID_REQUEST: RequestRefusedError,
    ErrorCode.POLICY_VIOLATION: PolicyViolationError,
}

#: A KRaft controller's error message, as a policy violation, for an operation with more than 10,000 records (Java
#: `EventHandlerExceptionInfo` for a `BoundedListTooLongException`), or with more partitions.
_TOO_LARGE = "excessively large"

_ACTIONS_BY_CODE: dict[int, str] = {
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "Set sasl.mechanism to one that the listener has enabled.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Grant WRITE on the transactional ids that start with `mirror:`; `mirror acls required` lists them. If the "
        "service does not allow transactional ids, set mirror.fencing=none."
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Allow the operation on the cluster resource for this user.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "Set replication.factor to at most the number of brokers.",
    ErrorCode.INVALID_CONFIG: (
        "Change the config named by the cluster: on the topics, with mirror.configs.override, or exclude it with "
        "mirror.configs.never."
    ),
    ErrorCode.POLICY_VIOLATION: (
        "The cluster has a policy for topics: list rejected configs in mirror.configs.never, or set accepted values "
        "in mirror.configs.override."
    ),
    ErrorCode.OFFSET_METADATA_TOO_LARGE: (
        "Raise offset.metadata.max.bytes of this cluster's brokers to that of the other cluster (Kafka's default is "
        "4096), or commit without metadata: mirror.group.metadata=drop."
    ),
    ErrorCode.INVALID_TIMESTAMP: (
        "Raise message.timestamp.before.max.ms and message.timestamp.after.max.ms on the target topic."
    ),
    ErrorCode.INVALID_RECORD: (
        "The target topic's configs reject it: a compacted topic accepts no records without a key."
    ),
    ErrorCode.UNKNOWN_TOPIC_ID: (
        "The topic was deleted since the run was planned, and possibly created again; the next run reports what was "
        "lost."
    ),
    ErrorCode.TOPIC_ALREADY_EXISTS: (
        "The next run uses the existing topic, and adds missing partitions. If another program created it for other "
        "records, choose another name (mirror.topics.rename)."
    ),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "Raise transaction.max.timeout.ms of the target's brokers (Kafka's default is 900000): a flow needs 60000, "
        "and one with transforms the time of its longest run. Without transforms, mirror.fencing=none needs no "
        "transactions (docs/reliability.md)."
    ),
    LocalCode.SSL: "Check ssl.truststore.*, ssl.keystore.* and ssl.endpoint.identification.algorithm.",
}

_ACTIONS: dict[type[ClusterError], str] = {
    AuthenticationError: "Check security.protocol, sasl.mechanism, sasl.jaas.config and the user on the cluster.",
    AuthorizationError: "Grant the permission to this user, or exclude the topic from the flow; `mirror acls "
    "required` lists all permissions that the flow needs.",
    ClusterError: "See the brokers' logs of that moment for the cause; run again when it is fixed.",
    BrokerUnreachableError: "Check that the brokers run, and bootstrap.servers and security.protocol.",
    CorruptBatchError: "Check the broker's disk and log for damage before anything is skipped.",
    FencedError: "Another run has taken over; wait until it ends.",
    OffsetOutOfRangeError: "The source no longer has this offset; decide whether the gap is acceptable.",
    RecordRefusedError: "Compare the target topic's configs with the source topic's.",
    RecordTooLargeError: "Raise max.message.bytes on the target topic; `mirror configs apply` copies the source's.",
    RequestRefusedError: "Change the setting named by the cluster.",
    SecurityDisabledError: (
        "Set authorizer.class.name on the brokers, or replicate without ACLs (sync.topic.acls.enabled=false)."
    ),
    TopicMissingError: (
        "If it is a target topic, create it with `mirror topics apply`. If it was deleted on the source, the next "
        "run no longer copies it."
    ),
    TransientError: "This is a transient error in Kafka; run again if it persists.",
    UnsupportedRequestError: "Kafka 2.4 is the oldest supported broker.",
}


_NAMES = {code.value: code.name for codes in (ErrorCode, LocalCode) for code in codes}


def is_retriable(code: int) -> bool:
    """True if Kafka defines the error as retriable (Java `RetriableException`), or it is a passing network error."""
    return code in RETRIABLE or _KINDS.get(code) in (BrokerUnreachableError, TransientError)


def code_name(code: int) -> str:
    """The code's name in Java, or librdkafka's; `error N` if it is unknown."""
    return _NAMES.get(code, f"error {code}")


@dataclass(frozen=True, slots=True)
class Needed:
    """The required permission, if the place of an error does not contain the cluster that rejected the request."""

    grant: Grant
    cluster: str


def error_for_code(
    code: int, *, where: Where, doing: str, detail: str = "", needs: Grant | Needed | None = None
) -> MirrorError:
    """The project's error for a code from a broker or librdkafka.

    Args:
        code: never `NONE`.
        doing: the attempted action; continues "could not", such as `read from the source`.
        detail: the broker's or client's own message.
        needs: the required permission, shown if the broker denies it.

    Returns:
        An error to raise or to store. Retriable codes without a type of their own become `TransientError`. A missing
        topic is not retriable here although Java retries it: only the caller knows if the topic is still being
        created.
    """
    if code == ErrorCode.NONE:
        raise ValueError("code 0 is not an error")
    kind = _KINDS.get(code) or (TransientError if code in RETRIABLE else ClusterError)
    if kind is AuthorizationError and needs is not None:
        return _not_allowed(code, where, doing, needs)
    message = f": {printable(detail)}" if detail else ""
    lacking = key_in_librdkafka_text(detail) if kind is UnsupportedRequestError else None
    if lacking is not None:
        return kind(
            f"could not {doing}: the cluster does not support {api_name(lacking)}: {code_name(code)} "
            f"(error code {code}){message.rstrip('.')}.",
            where=where,
            action=f"{how_without(lacking)} {_ACTIONS[kind]}".lstrip(),
        )
    return kind(
        f"could not {doing}: {code_name(code)} (error code {code}){message.rstrip('.')}.",
        where=where,
        action=_ACTIONS_BY_CODE.get(code) or _ACTIONS.get(kind, ""),
    )


_WITHOUT_IDS = " If the service does not allow transactional ids, set mirror.fencing=none (docs/reliability.md)."


def _not_allowed(code: int, where: Where, doing: str, needs: Grant | Needed) -> AuthorizationError:
    grant, cluster = (needs.grant, needs.cluster) if isinstance(needs, Needed) else (needs, where.cluster)
    named = " " if grant.resource is Resource.CLUSTER else " of cluster "
    place = f"{named}{cluster}" if cluster else ""
    instead = _WITHOUT_IDS if grant.resource is Resource.TRANSACTIONAL_ID else ""
    return AuthorizationError(
        f"could not {doing}: the user needs {grant}{place} ({code_name(code)}, error code {code}).",
        where=where,
        action=f"Grant it: kafka-acls.sh --add --allow-principal User:NAME {shlex.join(grant.arguments)}; `mirror acls "
        f"required` lists all permissions that the flow needs.{instead}",
    )


#: After this text, librdkafka appends the endpoint's URL and its response (`rdkafka_sasl_oauthbearer_oidc.c`), which
#: may repeat the client's secret.
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"


def _names_size(error: KafkaError) -> bool:
    return error.code() == ErrorCode.POLICY_VIOLATION and _TOO_LARGE in (error.str() or "").lower()


def error_text(error: KafkaError) -> str:
    """Return librdkafka's text of an error, without a token endpoint's response."""
    text: str = error.str() or ""
    return f"{_NO_TOKEN} from sasl.oauthbearer.token.endpoint.url" if _NO_TOKEN in text else text


def error_for(error: KafkaError, *, where: Where, doing: str, needs: Grant | Needed | None = None) -> MirrorError:
    """The project's error for one from confluent-kafka."""
    if _names_size(error):
        return OperationTooLargeError(
            f"could not {doing}: the controller rejected the size of the request ({printable(error_text(error))}).",
            where=where,
            action="A KRaft controller writes at most 10,000 metadata records in one operation: create the topic with "
            "fewer partitions, and add the others in steps.",
        )
    return error_for_code(error.code(), where=where, doing=doing, detail=error_text(error), needs=needs)
