"""The project's errors.

Every error says what happened, where, and what to do next. `reason` is the stable code in reports, the ledger and
alerts; `exit_code` is the exit code of the command line. Errors cross process boundaries (Spark, Airflow), so they
can be pickled, and `attributes()` returns their parts.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from mirror_lib.printable import LINES, printable


@dataclass(frozen=True, slots=True)
class Where:
    """The place of an error; parts that do not apply are None."""

    flow: str | None = None
    cluster: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.flow is not None:
            parts.append(f"flow {printable(self.flow)}")
        if self.cluster is not None:
            parts.append(f"cluster {printable(self.cluster)}")
        if self.topic is not None:
            parts.append(f"topic {printable(self.topic)}")
        if self.partition is not None:
            parts.append(f"partition {self.partition}")
        if self.offset is not None:
            parts.append(f"offset {self.offset}")
        return ", ".join(parts)

    @property
    def selected(self) -> str:
        """The options that select this partition in a command."""
        return f"--flow '{self.flow}' --topic {self.topic} --partition {self.partition}"

    def position_set(self, to: int | None = None) -> str:
        """Return the command that sets the position of this partition, in backquotes.

        Args:
            to: the source offset at which to continue, if it is known.
        """
        return f"`mirror position set {self.selected} --to {'OFFSET' if to is None else to}`"


NOWHERE = Where()


class MirrorError(Exception):
    """Base class of all errors that this project raises deliberately."""

    reason: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    #: True if the same call may succeed later without any change.
    retriable: ClassVar[bool] = False
    #: Control characters of the project's own texts. Elsewhere a line break comes from a name, and would forge a line.
    layout: ClassVar[str] = ""

    def __init__(self, what: str, *, where: Where = NOWHERE, action: str = "") -> None:
        # It contains names and messages from other systems, and goes to logs, ledger, reports and the page.
        self.what = printable(what, self.layout)
        self.where = where
        self.action = printable(action, self.layout)
        super().__init__(self.what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where != NOWHERE else ""
        todo = f" {self.action}" if self.action else ""
        return f"{place}{self.what}{todo}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.where, self.action)

    def located(self, where: Where) -> Self:
        """Return a copy with another location: several partitions may share one response, and its error."""
        found = copy(self)
        found.where = where
        return found

    def attributes(self) -> dict[str, Any]:
        """The error as plain data, for JSON output and the ledger."""
        place = {key: value for key, value in asdict(self.where).items() if value is not None}
        return {"reason": self.reason, "what": self.what, "action": self.action, **place}


def _rebuild(kind: type[MirrorError], what: str, where: Where, action: str) -> MirrorError:
    return kind(what, where=where, action=action)


def error_to_json(error: MirrorError | None) -> dict[str, Any] | None:
    """An error as JSON data; `error_from_json` creates an error of the same type from it."""
    if error is None:
        return None
    # Only errors with exactly these parts; others have more.
    standard = MirrorError.__dict__["__reduce__"]
    kinds = [each for each in type(error).__mro__ if getattr(each, "__reduce__", None) is standard]
    return {
        "types": [_name(each) for each in kinds],
        "what": error.what,
        "where": asdict(error.where),
        "action": error.action,
    }


def error_from_json(data: dict[str, Any] | None) -> MirrorError | None:
    """The error that `error_to_json` was given, as the most specific of its types that this process has loaded."""
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
    """The configuration file or an argument is wrong; retrying does not help."""

    reason = "configuration"
    exit_code = 2
    #: Problems of a file, and the part of it.
    layout = LINES


class ClusterError(MirrorError):
    """A Kafka cluster did not execute a request."""

    reason = "cluster"


class BrokerUnreachableError(ClusterError):
    """No broker of the cluster responded."""

    reason = "broker-unreachable"
    retriable = True


class AuthenticationError(ClusterError):
    """The cluster rejected the credentials or the TLS handshake."""

    reason = "authentication"
    exit_code = 3


class AuthorizationError(ClusterError):
    """The cluster does not allow the operation for this user."""

    reason = "authorization"
    exit_code = 3


class TopicMissingError(ClusterError):
    """The topic or partition does not exist (any more)."""

    reason = "topic-missing"


class TopicNotCreatableError(ClusterError):
    """A topic that the flow needs is missing, and the cluster's configuration does not allow its creation."""

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
    """A possibly valid batch would exceed its memory limit; it does not count as damaged and is never skipped."""

    reason = "oversized-batch"
    exit_code = 3


class BeyondMemoryError(OversizedBatchError):
    """A record, or a batch, of a transformed topic does not fit into its part of `mirror.task.memory.bytes`."""

    reason = "beyond-task-memory"
    exit_code = 3


class RecordTooLargeError(ClusterError):
    """The target rejects a record because of its size."""

    reason = "record-too-large"
    exit_code = 3


class RecordRefusedError(ClusterError):
    """The target rejects a record for a reason other than size, such as its timestamp or a missing key."""

    reason = "record-refused"
    exit_code = 3


class ManySkippedRangesError(ClusterError):
    """A partition has too many separate ranges of skipped records for one run; the next one continues."""

    reason = "many-skipped-ranges"
    retriable = True


class FencedError(ClusterError):
    """A newer run has taken over this partition; this one must stop."""

    reason = "fenced"


class TransientError(ClusterError):
    """A retriable error of Kafka, such as a leader election: it usually passes by itself."""

    reason = "transient"
    retriable = True


class RetriesExhaustedError(ClusterError):
    """A retriable error did not pass within the allowed time."""

    reason = "retries-exhausted"
    retriable = True


class ReplicationError(MirrorError):
    """The state of source, target and positions does not allow a copy that is certainly correct."""

    reason = "replication"
    exit_code = 3


class DirtyStartError(ReplicationError):
    """The previous run of this partition did not close its position."""

    reason = "unclean-start"


class OpenTransactionError(ReplicationError):
    """A transaction on the target is still open, so it is not known yet which of its records count."""

    reason = "target-transaction-open"
    exit_code = 1
    retriable = True


class SourceTransactionOpenError(ReplicationError):
    """A transaction on the source is open for longer than the maximum: records after it cannot be read."""

    reason = "source-transaction-open"


class PositionLostError(ReplicationError):
    """The flow has copied this partition before, but Kafka has no position of it any more."""

    reason = "position-lost"


class LedgerBehindError(ReplicationError):
    """The ledger lacks the history of a position: the offset map and the gaps on the way to it are unknown."""

    reason = "ledger-behind"


class TargetNotEmptyError(ReplicationError):
    """The target topic holds records although the flow has no position for it."""

    reason = "target-not-empty"


class TargetDivergedError(ReplicationError):
    """The target partition has unexpected records: another producer wrote to it."""

    reason = "target-diverged"


class OffsetsDifferError(ReplicationError):
    """Records cannot get the offsets that they have at the source."""

    reason = "offsets-differ"


class TargetTruncatedError(ReplicationError):
    """The target partition ends before the records that were copied to it."""

    reason = "target-truncated"


class TargetDeletedError(ReplicationError):
    """The target topic that records were copied to no longer exists."""

    reason = "target-deleted"


class TargetRecreatedError(ReplicationError):
    """The target topic was recreated after records were copied to it."""

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
    """The source lost records that were already copied: its log now holds other records at their offsets."""

    reason = "source-truncated"


class SourceRecreatedError(ReplicationError):
    """The source topic was deleted and recreated under the same name."""

    reason = "source-recreated"


class WrittenAfterCutoverError(ReplicationError):
    """Records were written to the source of a topic after a cutover had moved its writers to the target."""

    reason = "written-after-cutover"
    exit_code = 3


class NoLongerSelectedError(ReplicationError):
    """The flow has copied the partition, and selects it no longer: what was written since its last look is unknown."""

    reason = "no-longer-selected"


class DeletionsPossiblyLostError(ReplicationError):
    """A compacted source may have removed deletions before they were copied: their keys may stay on the target."""

    reason = "deletions-possibly-lost"


#: Reasons for records that the source lost, before or after they were copied.
SOURCE_LOSS_REASONS = frozenset(
    kind.reason for kind in (RetentionGapError, SourceClusterChangedError, SourceRecreatedError, SourceTruncatedError)
)
#: Reasons for a target partition that does not hold the copied records.
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
#: Reasons for a position that does not fit source or target: setting another position resolves them.
POSITION_REASONS = SOURCE_LOSS_REASONS | TARGET_CHANGE_REASONS
#: Reasons that an operator resolves with `mirror gaps`.
LOSS_REASONS = POSITION_REASONS | {WrittenAfterCutoverError.reason}

#: Reasons of gaps with unknown content: they skip no record that a run has seen, and explain no difference.
UNKNOWN_REASONS = frozenset({LedgerBehindError.reason, NoLongerSelectedError.reason})


class PlanChangedError(ReplicationError):
    """The plan has changed since it was approved."""

    reason = "plan-changed"
    exit_code = 3


class TopologyError(ReplicationError):
    """Source and target topics do not fit together: names collide or partition counts differ."""

    reason = "topology"


class OffsetMapError(ReplicationError):
    """A stored segment of the exact offset map cannot be read."""

    reason = "offset-map"


class CheckpointFolderError(ReplicationError):
    """A checkpoint folder of Spark structured streaming contains something that cannot be translated with certainty."""

    reason = "checkpoint-folder"


class SparkJobError(MirrorError):
    """Spark ended the copy: executors died repeatedly, or the session is gone."""

    reason = "spark-job"
    retriable = True
    #: The end of a log.
    layout = LINES


class NoExecutorsError(SparkJobError):
    """Spark has given the job no executor in time."""

    reason = "no-executors"


class SparkUnreachableError(MirrorError):
    """The Spark Connect server does not respond."""

    reason = "spark-unreachable"
    retriable = True


class RunLockedError(MirrorError):
    """Another run of the flow is active, or took over from this one."""

    reason = "run-locked"
    retriable = True


class AnotherRunError(RunLockedError):
    """Another run holds the lock and has just renewed it, so this run did not start."""

    def attributes(self) -> dict[str, Any]:
        """As in the base class, with the mark that distinguishes it from a lost lock."""
        return {**super().attributes(), "holder_lives": True}


class RunDiedError(MirrorError):
    """A run died without recording its end: its process was killed, or its machine is gone."""

    reason = "run-died"
    retriable = True


class LedgerError(MirrorError):
    """The SQL ledger cannot be used."""

    reason = "ledger"


#: Reasons of errors that may not come again: the same step can be repeated.
RETRIABLE_REASONS = frozenset(each.reason for each in _kinds().values() if each.retriable)


def attributes_of(error: BaseException) -> dict[str, Any]:
    """The stored parts of any exception, including unexpected ones."""
    if isinstance(error, MirrorError):
        return error.attributes()
    return {"reason": "unexpected", "what": f"{type(error).__name__}: {error}".rstrip(": ")}
