"""The states of a backfill, and how to continue from each. Pure.

One table for messages, `mirror backfill list`, `mirror backfill states` and the documentation. A partition of a
backfill stops for the same reasons as a flow's partition, but `mirror gaps` and `mirror position set` do not apply to
it: repeat the backfill, or copy the range into a topic that has no other producer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.errors import (
    DeletionsPossiblyLostError,
    DirtyStartError,
    MirrorError,
    OffsetOutOfRangeError,
    OversizedBatchError,
    RetentionGapError,
    SourceClusterChangedError,
    SourceRecreatedError,
    SourceTruncatedError,
    TargetClusterChangedError,
    TargetDeletedError,
    TargetDivergedError,
    TargetNotEmptyError,
    TargetRecreatedError,
    TargetRenamedError,
    TargetTruncatedError,
    TopicMissingError,
    TopologyError,
)
from mirror_lib.features.backfill.model import Backfill, BackfillRange
from mirror_lib.planning.backfills import again, let_flow_continue, or_dag
from mirror_lib.topology.names import FlowId, TopicPartition

#: Suffix of a target topic for a new copy of the range.
_ANEW = ".anew"


class State(StrEnum):
    """The state of a backfill."""

    DEFINED = "defined"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    PARTLY_COPIED = "partly-copied"
    STOPPED = "stopped"
    FINISHED = "finished"


class Resolution(StrEnum):
    """How a stopped partition of a backfill continues."""

    REPEAT = "repeat it"
    ACCEPT = "repeat it with --accept-gaps"
    ANEW = "copy the range into another topic"


@dataclass(frozen=True, slots=True)
class StateText:
    """Description of a state, and what to do."""

    #: For operators.
    description: str
    #: What to do, with `{again}`; empty if nothing remains to do.
    do: str


STATES: Mapping[State, StateText] = {
    State.DEFINED: StateText("Nothing is copied yet: no run has started.", "Run it: {again}."),
    State.RUNNING: StateText(
        "A process is copying.", "Wait until it ends, or stop it (Ctrl-C, or mark its task) and repeat it: {again}."
    ),
    State.INTERRUPTED: StateText(
        "The process of its last run died without an error. A flow that writes to the same topic waits for it.",
        "Repeat it: {again}. The next run finds the records that were already written and does not write them again.",
    ),
    State.PARTLY_COPIED: StateText("Its last run ended at its limit; records are left to copy.", "Repeat it: {again}."),
    State.STOPPED: StateText(
        "Its last run ended with an error, or partitions have stopped.",
        "Follow the action of the error, then repeat it: {again}.",
    ),
    State.FINISHED: StateText("The whole range is on the target.", ""),
}


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a partition of a backfill stops, and how it continues."""

    resolution: Resolution
    #: Text in front of the command.
    advice: str = ""
    #: The source has another history: the offsets of the range have no meaning there.
    whole: bool = False


_KEPT = "Copied records are kept. "
#: By reason code. All others are fixed outside (credentials, a setting, a cluster that does not respond), and a
#: repeated run then continues.
STOPS: Mapping[str, Stop] = {
    RetentionGapError.reason: Stop(Resolution.ACCEPT, "Raise the source topic's retention. "),
    OffsetOutOfRangeError.reason: Stop(Resolution.REPEAT, "The next run reports which records were deleted. "),
    TopicMissingError.reason: Stop(Resolution.REPEAT, "Each run creates the target topics that are missing. "),
    TopologyError.reason: Stop(Resolution.REPEAT, "Each run adds the target partitions that are missing. "),
    SourceTruncatedError.reason: Stop(Resolution.ANEW, _KEPT, whole=True),
    SourceRecreatedError.reason: Stop(Resolution.ANEW, _KEPT, whole=True),
    SourceClusterChangedError.reason: Stop(Resolution.ANEW, _KEPT, whole=True),
    TargetClusterChangedError.reason: Stop(Resolution.ANEW),
    TargetDeletedError.reason: Stop(Resolution.ANEW, "Find out who deleted it. "),
    TargetRecreatedError.reason: Stop(Resolution.ANEW, "Find out who deleted it. "),
    TargetRenamedError.reason: Stop(Resolution.ANEW),
    TargetTruncatedError.reason: Stop(Resolution.ANEW, "Find out why the target lost records. "),
    TargetDivergedError.reason: Stop(Resolution.ANEW, "Find the other producer: only the backfill may write there. "),
    TargetNotEmptyError.reason: Stop(
        Resolution.ANEW, "To append after these records, set mirror.target.existing=append and repeat the command. "
    ),
    DirtyStartError.reason: Stop(Resolution.ANEW, "The last copied offset of the interrupted run is unknown. "),
    OversizedBatchError.reason: Stop(
        Resolution.ANEW, "A copy that starts at the first offset of the batch can skip it. "
    ),
    DeletionsPossiblyLostError.reason: Stop(
        Resolution.ANEW, "Keys that were deleted between two runs may still exist in the copy. Use fewer runs. "
    ),
}


@dataclass(frozen=True, slots=True)
class Known:
    """The facts from the ledger that determine a backfill's state."""

    #: A live process holds its lock.
    carried: bool
    #: State of its last run; None before the first.
    run_state: str | None
    #: Reason code of that run's error.
    reason: str | None
    #: True if offsets remain.
    left: bool


#: Reason codes of runs that ended without an error of their own.
_WITHOUT_ERROR = frozenset({"run-died", "spark-job", "interrupted", "unexpected"})


def state_of(known: Known) -> State:
    """The state of a backfill."""
    if known.carried:
        return State.RUNNING
    if known.run_state is None:
        return State.DEFINED if known.left else State.FINISHED
    if known.run_state == "running" or known.reason in _WITHOUT_ERROR:
        return State.INTERRUPTED
    if known.reason is not None:
        return State.STOPPED
    return State.PARTLY_COPIED if known.left else State.FINISHED


def copy_anew(backfill: Backfill, topic: str, *, whole: bool = False) -> str:
    """The command that copies a topic's range into a topic that has no other producer.

    Args:
        whole: copy all that the source has: the offsets of the range belong to another history.
    """
    request = backfill.request
    plain = FlowId(request.flow.source, request.flow.target)
    into = f"--into '{request.into}{_ANEW}'" if request.into else f"--into-suffix '{request.into_suffix or ''}{_ANEW}'"
    ranges = [each for each in backfill.ranges if each.source.topic == topic]
    begin, end = ("earliest", "latest") if whole else _bounds(backfill, ranges)
    pattern = topic.replace(".", "\\.")
    return f"`mirror backfill run --flow '{plain}' --topics '{pattern}' --from '{begin}' --to '{end}' {into}`"


def _bounds(backfill: Backfill, ranges: Sequence[BackfillRange]) -> tuple[str, str]:
    """Bounds for all partitions of a topic: its offsets if it has one partition, else the request's bounds."""
    if len(ranges) == 1 or (ranges and backfill.request.after_cutover):
        # Records that a backfill has copied count as fetched: `cutover` would skip them.
        first, following = min(each.first for each in ranges), max(each.following for each in ranges)
        return f"offset {first}", f"offset {following}"
    request = backfill.request.to_dict()
    return request["from"], request["to"]


def with_resolution(
    backfill: Backfill, error: MirrorError, *, interrupted: bool = False, marked_at: int | None = None
) -> MirrorError:
    """The error of a partition, with the resolution for a backfill instead of the one for the flow.

    Args:
        interrupted: an interrupted run may have written records that only a comparison with the source identifies.
        marked_at: the next source offset of the flow itself if it waits for this backfill.
    """
    stop, topic = STOPS.get(error.reason), error.where.topic
    if stop is None or topic is None:
        return error
    explained = copy(error)
    if backfill.into_live and error.reason in (TopicMissingError.reason, TopologyError.reason):
        explained.action = (
            f"Run the flow, which creates its topics and partitions: `mirror run --flow '{backfill.request.flow}'`. "
            f"Then repeat: {again(backfill.flow, backfill.name)}."
        )
    elif stop.resolution is Resolution.REPEAT:
        explained.action = f"{stop.advice}Repeat it: {again(backfill.flow, backfill.name)}, {or_dag(backfill.name)}."
    elif stop.resolution is Resolution.ACCEPT and not interrupted:
        explained.action = (
            f"{stop.advice}To skip the deleted records and continue: "
            f"{again(backfill.flow, backfill.name, '--accept-gaps')}, {or_dag(backfill.name, ' and Accept gaps')}."
        )
    else:
        source = TopicPartition(topic, error.where.partition or 0)
        give_up = "" if marked_at is None else f"{let_flow_continue(backfill.flow, source, marked_at)} "
        anew = copy_anew(backfill, topic, whole=stop.whole)
        explained.action = f"{stop.advice}{give_up}Copy the range into another topic: {anew}."
    return explained


def rows() -> Iterator[tuple[str, str, str]]:
    """Rows of the table of states: state, description, what to do."""
    for state, text in STATES.items():
        yield state.value, text.description, text.do.format(again=again(FlowId("A", "B"), "NAME")) or "nothing"


def stop_rows() -> Iterator[tuple[str, str, str]]:
    """Each reason code that stops a partition of a backfill, how it continues, and what to check before."""
    for reason, stop in sorted(STOPS.items()):
        yield reason, stop.resolution.value, stop.advice.strip()


def markdown() -> str:
    """The states and the reasons: part of docs/backfill.md."""
    lines = ["| state | meaning | action |", "|---|---|---|"]
    lines += [f"| `{state}` | {described} | {do} |" for state, described, do in rows()]
    lines += ["", "| stop reason | resolution | first |", "|---|---|---|"]
    lines += [f"| `{reason}` | {resolution} | {advice} |" for reason, resolution, advice in stop_rows()]
    return "\n".join(lines) + "\n"
