"""How the Spark job ended: its report file, and what stands for it when it could not write one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from mirror_lib.dev.processes import tail
from mirror_lib.errors import LedgerError, MirrorError
from mirror_lib.ledger.rows import RunState
from mirror_lib.ledger.store import Ledger

_LOG_LINES = 20


class SparkJobError(MirrorError):
    """The Spark job ended without saying how."""

    reason = "spark-job"


class RunFailedError(MirrorError):
    """The job failed as a whole; reason, text and exit code are those that it reported."""

    def __init__(self, attributes: Mapping[str, Any], exit_code: int) -> None:
        super().__init__(str(attributes.get("what", "the run failed.")), action=str(attributes.get("action", "")))
        # The class that the job raised need not be known here.
        self._attributes = dict(attributes)
        self.exit_code = exit_code  # type: ignore[misc]  # a class variable elsewhere

    def attributes(self) -> dict[str, Any]:
        """As the job reported them."""
        return dict(self._attributes)


@dataclass(frozen=True, slots=True)
class Failure:
    """One partition, or a topic as a whole, that was not copied or not to its end."""

    topic: str
    #: None when the whole topic is meant.
    partition: int | None
    reason: str
    what: str
    action: str


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The report of one job, without its rows per partition: the ledger has them."""

    exit_code: int
    records: int
    bytes: int
    rounds: int
    idle: int
    seconds: float
    copy_seconds: float
    failures: tuple[Failure, ...]
    log: Path

    @classmethod
    def read(cls, report: Path, *, exit_code: int, log: Path) -> Self:
        """The outcome that a job reported.

        Args:
            report: the file it was told to write.
            exit_code: how its process ended.
            log: what it printed, for errors.

        Raises:
            RunFailedError: the job failed as a whole.
            SparkJobError: there is no report: Spark failed, or somebody ended it.
        """
        if not report.is_file():
            raise SparkJobError(
                f"the Spark job ended with exit code {exit_code} and without a report. The end of its log:\n"
                f"{tail(log, _LOG_LINES)}",
                action=f"See {log}.",
            )
        data = json.loads(report.read_text())
        if "error" in data:
            raise RunFailedError(data["error"], int(data["exit_code"]))
        return cls(
            exit_code=int(data["exit_code"]),
            records=int(data["records"]),
            bytes=int(data["bytes"]),
            rounds=int(data["rounds"]),
            idle=int(data["idle_partitions"]),
            seconds=float(data["seconds"]),
            copy_seconds=float(data["copy_seconds"]),
            failures=tuple(_failures(data["partitions"], data["problems"])),
            log=log,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {**asdict(self), "log": str(self.log)}


def close_abandoned(ledger: Ledger, run_id: str) -> None:
    """Note that a run failed whose job is gone and could not do so itself; nothing to do for any other.

    A ledger that does not answer is left as it is: there is a more important error to tell.
    """
    with suppress(LedgerError):
        row = ledger.run(run_id)
        if row is not None and row.state == RunState.RUNNING:
            error = SparkJobError("the Spark job ended before its run did.", action="Its partitions may be open.")
            ledger.finish_run(run_id, state=RunState.FAILED.value, error=error.attributes())


def _failures(partitions: Iterable[Mapping[str, Any]], problems: Iterable[Mapping[str, Any]]) -> Iterator[Failure]:
    for row in partitions:
        if row["error"]:
            yield _failure({**row["error"], "topic": row["topic"], "partition": row["partition"]})
    for row in problems:
        yield _failure(row)


def _failure(data: Mapping[str, Any]) -> Failure:
    partition = data["partition"]
    return Failure(
        topic=data["topic"],
        # `relay.model.WHOLE_TOPIC`
        partition=None if partition is None or partition < 0 else partition,
        reason=data["reason"],
        what=data["what"],
        action=data["action"],
    )
