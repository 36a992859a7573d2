"""The interface of a run: its options, its runner and planner, and its report."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.rows import RoundRow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionProblem, PartitionResult, RunPlan

#: Copies every bin of a job and returns a result for every partition; Spark in production.
CopyRunner = Callable[[CopyJob], list[PartitionResult]]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one run that override its flow's configuration."""

    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    #: Who started the run, for the ledger.
    trigger: str = "cli"
    #: Java regexes; empty copies all topics of the flow.
    topics: tuple[str, ...] = ()
    tasks_max: int | None = None
    #: Seconds after which no new round begins; 0 makes one round.
    max_seconds: float | None = None
    #: Seconds after which a run that has caught up checks for new records, until its time is over; 0: it ends.
    poll_seconds: float | None = None
    #: Seconds that earlier attempts of the same DAG run have used of `mirror.run.longest.seconds`.
    elapsed_seconds: float = 0.0
    #: What to do about source losses; None leaves the partition stalled until an operator decides.
    losses: Decision | None = None
    #: Maximum bytes per second to read from the source, over all tasks; None: the flow's limit.
    bytes_per_second: int | None = None
    #: Compare the last copied record of every idle partition, even if there are more than a run compares in one round.
    asks_all: bool = False


class Planner(Protocol):
    """Determines what a run copies, for runs other than the flow's own."""

    #: Connector name of the run's positions.
    connector: str

    def plan(self, clusters: FlowClusters) -> RunPlan:
        """The plan of the next round; an empty plan ends the run."""

    def before_claims(self, clusters: FlowClusters, plan: RunPlan) -> None:
        """Called before the positions of a plan are opened, when nothing is written yet."""

    def after_commit(self, results: Sequence[PartitionResult]) -> None:
        """Called when a round is committed."""

    def with_resolution(self, error: MirrorError) -> MirrorError:
        """The error of a partition, with the resolution for this run instead of the one for the flow."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run."""

    run_id: str
    flow: str
    rounds: int
    idle: int
    seconds: float
    #: Seconds of the copy stage alone, over all rounds.
    copy_seconds: float
    results: tuple[PartitionResult, ...]
    problems: tuple[PartitionProblem, ...]
    #: Expected and actual duration of each round that had something to copy, and the age of its records.
    round_lags: tuple[RoundRow, ...] = ()
    #: Warnings of the plans, each once: partitions for which the run waited.
    warnings: tuple[str, ...] = ()
    #: Copied partitions in which deletions may be lost.
    deletions: tuple[PartitionProblem, ...] = ()
    #: Source offsets that were lost before the copy and skipped as the run was asked to.
    lost: int = 0

    @property
    def records(self) -> int:
        """Records copied."""
        return sum(result.records for result in self.results)

    @property
    def bytes(self) -> int:
        """Bytes of record batches written to the target."""
        return sum(result.bytes for result in self.results)

    @property
    def skipped(self) -> int:
        """Records that cannot be copied and that the flow's policy skipped; an unreadable batch counts as one."""
        return sum(poison.records or 1 for result in self.results for poison in result.poison)

    @property
    def errors(self) -> tuple[MirrorError, ...]:
        """Why partitions were not copied, or not to their end."""
        failed = [result.error for result in self.results if result.error is not None]
        return (*failed, *(problem.error for problem in self.problems))

    @property
    def exit_code(self) -> int:
        """0 if everything was copied; 3 if an operator has to decide something, else 1."""
        if self.deletions:
            return 3
        if not self.errors:
            return 0
        return 3 if any(error.exit_code == 3 for error in self.errors) else 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and the report file."""
        return {
            "run_id": self.run_id,
            "flow": self.flow,
            "rounds": self.rounds,
            "seconds": round(self.seconds, 3),
            "copy_seconds": round(self.copy_seconds, 3),
            "records": self.records,
            "bytes": self.bytes,
            "skipped": self.skipped,
            "lost": self.lost,
            "idle_partitions": self.idle,
            "exit_code": self.exit_code,
            "partitions": [result.to_dict() for result in self.results],
            "problems": [problem.to_dict() for problem in self.problems],
            "round_lags": [row.to_dict() for row in self.round_lags],
            "warnings": list(self.warnings),
            "deletions": [problem.to_dict() for problem in self.deletions],
        }
