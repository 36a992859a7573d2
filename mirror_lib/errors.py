"""What can go wrong, as types.

Every error says what happened, where, and what to do next. `reason` is the stable code that reports, the ledger and
alerts carry; `exit_code` is what the command line ends with. Errors cross process borders (Spark, Airflow), so they
pickle and expose their parts by `attributes()`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from mirror_lib.printable import LINES, printable


@dataclass(frozen=True, slots=True)
class Where:
    """The place an error speaks of; parts that do not apply are None."""

    flow: str | None = None
    cluster: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.flow is not None:
            parts.append(f"flow {self.flow}")
        if self.cluster is not None:
            parts.append(f"cluster {self.cluster}")
        if self.topic is not None:
            parts.append(f"topic {self.topic}")
        if self.partition is not None:
            parts.append(f"partition {self.partition}")
        if self.offset is not None:
            parts.append(f"offset {self.offset}")
        return ", ".join(parts)


NOWHERE = Where()


class MirrorError(Exception):
    """Root of everything this project raises on purpose."""

    reason: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    #: Whether the same call may succeed later without anybody changing anything.
    retriable: ClassVar[bool] = False

    def __init__(self, what: str, *, where: Where = NOWHERE, action: str = "") -> None:
        # Names and messages that others chose are part of it, and it goes to logs, ledger, reports and the page.
        self.what = printable(what, LINES)
        self.where = where
        self.action = printable(action, LINES)
        super().__init__(self.what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where != NOWHERE else ""
        todo = f" {self.action}" if self.action else ""
        return f"{place}{self.what}{todo}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.where, self.action)

    def attributes(self) -> dict[str, Any]:
        """The error as plain data, for JSON output and the ledger."""
        place = {key: value for key, value in asdict(self.where).items() if value is not None}
        return {"reason": self.reason, "what": self.what, "action": self.action, **place}


def _rebuild(kind: type[MirrorError], what: str, where: Where, action: str) -> MirrorError:
    return kind(what, where=where, action=action)


def error_to_json(error: MirrorError | None) -> dict[str, Any] | None:
    """An error as JSON can say it; `error_from_json` makes one of the same type of it."""
    if error is None:
        return None
    # Those that are made of these parts; others have more.
    standard = MirrorError.__dict__["__reduce__"]
    kinds = [each for each in type(error).__mro__ if getattr(each, "__reduce__", None) is standard]
    return {
        "types": [_name(each) for each in kinds],
        "what": error.what,
        "where": asdict(error.where),
        "action": error.action,
    }


def error_from_json(data: dict[str, Any] | None) -> MirrorError | None:
    """What `error_to_json` was given, of the nearest of its types that this process has loaded."""
    if data is None:
        return None
    known = _kinds()
    kind = next(known[each] for each in data["types"] if each in known)
    return kind(data["what"], where=Where(**data["where"]), action=data["action"])


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _kinds() -> dict[str, type[MirrorError]]:
    found: dict[str, type[MirrorError]] = {}
    todo = [MirrorError]
    while todo:
        kind = todo.pop()
        found[_name(kind)] = kind
        todo += kind.__subclasses__()
    return found


class ConfigurationError(MirrorError):
    """The configuration file or an argument is wrong; trying again cannot help."""

    reason = "configuration"
    exit_code = 2


class ClusterError(MirrorError):
    """A Kafka cluster did not do what was asked."""

    reason = "cluster"


class BrokerUnreachableError(ClusterError):
    """No broker of the cluster answered."""

    reason = "broker-unreachable"
    retriable = True


class AuthenticationError(ClusterError):
    """The cluster refused our credentials or the TLS handshake."""

    reason = "authentication"
    exit_code = 3


class AuthorizationError(ClusterError):
    """The cluster knows us and does not allow the operation."""

    reason = "authorization"
    exit_code = 3


class TopicMissingError(ClusterError):
    """The topic or partition does not exist (any more)."""

    reason = "topic-missing"


class TopicNotCreatableError(ClusterError):
    """A topic that the flow needs is missing, and the cluster cannot make it as it is configured."""

    reason = "topic-not-creatable"
    exit_code = 3


class OffsetOutOfRangeError(ClusterError):
    """The source no longer holds (or does not yet hold) the offset to read."""

    reason = "offset-out-of-range"
    exit_code = 3


class CorruptBatchError(ClusterError):
    """A record batch read from the source is damaged."""

    reason = "corrupt-batch"
    exit_code = 3


class OversizedBatchError(ClusterError):
    """A batch that may be sound would take more memory than is given to one; it is no damage, and never left out."""

    reason = "oversized-batch"
    exit_code = 3


class BeyondMemoryError(OversizedBatchError):
    """A record, or a batch, of a transformed topic does not fit into its part of `mirror.task.memory.bytes`."""

    reason = "beyond-task-memory"
    exit_code = 3


class RecordTooLargeError(ClusterError):
    """The target refuses a record because of its size."""

    reason = "record-too-large"
    exit_code = 3


class RecordRefusedError(ClusterError):
    """The target refuses a record for a reason other than size, such as its timestamp or a missing key."""

    reason = "record-refused"
    exit_code = 3


class FencedError(ClusterError):
    """A newer run has taken over this partition; this one must stop."""

    reason = "fenced"


class TransientError(ClusterError):
    """A fault that Kafka calls retriable, such as a leader election: it usually passes by itself."""

    reason = "transient"
    retriable = True


class RetriesExhaustedError(ClusterError):
    """A fault that usually passes did not pass within the allowed time."""

    reason = "retries-exhausted"
    retriable = True


class ReplicationError(MirrorError):
    """The state of source, target and positions does not allow a copy that is certain to be right."""

    reason = "replication"
    exit_code = 3


class DirtyStartError(ReplicationError):
    """The previous run of this partition did not end with a closed position."""

    reason = "unclean-start"


class OpenTransactionError(ReplicationError):
    """A transaction on the target stays open, so that nobody knows yet which of its records count."""

    reason = "target-transaction-open"
    exit_code = 1
    retriable = True


class SourceTransactionOpenError(ReplicationError):
    """A transaction on the source has been open for longer than any may: what is behind it cannot be read."""

    reason = "source-transaction-open"


class TargetNotEmptyError(ReplicationError):
    """The target topic holds records though nothing is known to have been copied there."""

    reason = "target-not-empty"


class TargetDivergedError(ReplicationError):
    """Somebody else wrote to the target partition."""

    reason = "target-diverged"


class TargetTruncatedError(ReplicationError):
    """The target partition is shorter than what was copied to it."""

    reason = "target-truncated"


class TargetDeletedError(ReplicationError):
    """The target topic that records were copied to does not exist any more."""

    reason = "target-deleted"


class TargetRecreatedError(ReplicationError):
    """The target topic was deleted and created again since records were copied to it."""

    reason = "target-recreated"


class TargetRenamedError(ReplicationError):
    """The flow's rules name another target topic than the one that records were copied to."""

    reason = "target-renamed"


class SourceClusterChangedError(ReplicationError):
    """The alias of the source names another cluster than the one that records were copied from."""

    reason = "source-cluster-changed"


class TargetClusterChangedError(ReplicationError):
    """The alias of the target names another cluster than the one that records were copied to."""

    reason = "target-cluster-changed"


class RetentionGapError(ReplicationError):
    """The source deleted records before they were copied."""

    reason = "retention-gap"


class SourceTruncatedError(ReplicationError):
    """The source lost records that were copied already: what stands there now is another history."""

    reason = "source-truncated"


class SourceRecreatedError(ReplicationError):
    """The source topic was deleted and created again under its old name."""

    reason = "source-recreated"


class WrittenAfterCutoverError(ReplicationError):
    """Records were written to the source of a topic after a cutover has moved its writers to the target."""

    reason = "written-after-cutover"
    exit_code = 3


class DeletionsPossiblyLostError(ReplicationError):
    """A compacted source may have removed deletions before they were copied: keys may live on the target for ever."""

    reason = "deletions-possibly-lost"


#: Reasons by which records are lost at the source since they were copied, or before.
SOURCE_LOSS_REASONS = frozenset(
    kind.reason for kind in (RetentionGapError, SourceClusterChangedError, SourceRecreatedError, SourceTruncatedError)
)
#: Reasons by which a target partition does not hold the records that were copied to it.
TARGET_CHANGE_REASONS = frozenset(
    kind.reason
    for kind in (
        TargetClusterChangedError,
        TargetDeletedError,
        TargetRecreatedError,
        TargetRenamedError,
        TargetTruncatedError,
    )
)
#: Reasons that a position is wrong about source or target: another position ends them.
POSITION_REASONS = SOURCE_LOSS_REASONS | TARGET_CHANGE_REASONS
#: Reasons that an operator decides about by `mirror gaps`.
LOSS_REASONS = POSITION_REASONS | {WrittenAfterCutoverError.reason}


class PlanChangedError(ReplicationError):
    """What somebody has agreed to is not what would be done now."""

    reason = "plan-changed"
    exit_code = 3


class PoisonError(ReplicationError):
    """A record or batch of the source cannot be copied, and the flow's policy is to stop there."""

    reason = "poison"


class TopologyError(ReplicationError):
    """Source and target topics do not fit together: names collide or partition counts differ."""

    reason = "topology"


class OffsetMapError(ReplicationError):
    """A stored piece of the exact offset map cannot be read."""

    reason = "offset-map"


class CheckpointFolderError(ReplicationError):
    """A checkpoint folder of Spark structured streaming holds something that cannot be translated for certain."""

    reason = "checkpoint-folder"


class SparkJobError(MirrorError):
    """Spark ended the copy: an executor died again and again, or the session is gone."""

    reason = "spark-job"
    retriable = True


class SparkUnreachableError(MirrorError):
    """The Spark Connect server does not answer."""

    reason = "spark-unreachable"
    retriable = True


class RunLockedError(MirrorError):
    """Another run of the flow is active, or took over from this one."""

    reason = "run-locked"
    retriable = True


class AnotherRunError(RunLockedError):
    """Another run holds the lock and was seen to renew it, so nothing was begun here."""

    def attributes(self) -> dict[str, Any]:
        """As of every error, with what tells it from a lock that was lost."""
        return {**super().attributes(), "holder_lives": True}


class RunDiedError(MirrorError):
    """A run ended without a word: its process was killed, or its machine is gone."""

    reason = "run-died"
    retriable = True


class LedgerError(MirrorError):
    """The SQL ledger cannot be used."""

    reason = "ledger"


def attributes_of(error: BaseException) -> dict[str, Any]:
    """What is kept of an error, also of one that nobody expected."""
    if isinstance(error, MirrorError):
        return error.attributes()
    return {"reason": "unexpected", "what": f"{type(error).__name__}: {error}".rstrip(": ")}
