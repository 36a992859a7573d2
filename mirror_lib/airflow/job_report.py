"""What the Spark job leaves behind for Airflow: its report file, and what a failure of it means."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from mirror_lib.errors import NOWHERE, ConfigurationError, MirrorError, ReplicationError

#: XCom is no place for a hundred thousand rows; the ledger has them all.
_PROBLEMS_KEPT = 20
_EXIT_CODE = re.compile(r"Error code is: (\d+)")


class ReplicationRunError(MirrorError):
    """Some partitions were not copied; a retry copies what is left."""

    reason = "run-failed"
    retriable = True


@dataclass(frozen=True, slots=True)
class JobProblem:
    """One partition, or the run as a whole, that failed."""

    reason: str
    what: str
    action: str = ""
    topic: str | None = None
    partition: int | None = None

    @classmethod
    def from_attributes(cls, data: Mapping[str, Any]) -> Self:
        """From `MirrorError.attributes()`, as the report file holds it."""
        return cls(
            reason=str(data.get("reason", "error")),
            what=str(data.get("what", "")),
            action=str(data.get("action", "")),
            topic=data.get("topic"),
            partition=data.get("partition"),
        )

    def __str__(self) -> str:
        place = "" if self.topic is None else f"{self.topic}-{self.partition}: "
        return f"[{self.reason}] {place}{self.what} {self.action}".rstrip()


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """What a dry run would copy of one topic. Offsets are at least the records: some may hold none."""

    topic: str
    target_topic: str
    partitions: int
    offsets: int
    estimated_bytes: int


@dataclass(frozen=True, slots=True)
class JobReport:
    """The report file of one `spark_jobs/replicate.py`, without its rows per partition: those are in the ledger."""

    exit_code: int
    run_id: str | None = None
    dry_run: bool = False
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    failed: int = 0
    problems: tuple[JobProblem, ...] = ()
    #: A dry run's plan, added up per topic.
    planned: tuple[PlannedTopic, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The report at `path`, None when the job ended before it could write one."""
        if not path.is_file():
            return None
        data = json.loads(path.read_text())
        problems = _problems(data)
        return cls(
            exit_code=int(data["exit_code"]),
            run_id=data.get("run_id"),
            dry_run=bool(data.get("dry_run")),
            records=int(data.get("records", 0)),
            bytes=int(data.get("bytes", 0)),
            seconds=float(data.get("seconds", 0.0)),
            failed=len(problems),
            problems=tuple(problems[:_PROBLEMS_KEPT]),
            planned=_planned(data.get("plan", {}).get("partitions", ())),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for XCom."""
        return {
            "exit_code": self.exit_code,
            "run_id": self.run_id,
            "dry_run": self.dry_run,
            "records": self.records,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "failed": self.failed,
            "problems": [str(problem) for problem in self.problems],
            "planned": [asdict(topic) for topic in self.planned],
        }


def _planned(partitions: Iterable[Mapping[str, Any]]) -> tuple[PlannedTopic, ...]:
    by_topic: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in partitions:
        by_topic.setdefault((row["topic"], row["target_topic"]), []).append(row)
    return tuple(
        PlannedTopic(
            *names,
            partitions=len(rows),
            offsets=sum(row["end"] - row["start"] for row in rows),
            estimated_bytes=sum(row["estimated_bytes"] for row in rows),
        )
        for names, rows in sorted(by_topic.items())
    )


def _problems(data: Mapping[str, Any]) -> list[JobProblem]:
    found = [JobProblem.from_attributes(data["error"])] if data.get("error") else []
    found += [
        JobProblem.from_attributes({"topic": row["topic"], "partition": row["partition"], **row["error"]})
        for row in data.get("partitions", ())
        if row.get("error")
    ]
    refused = [*data.get("problems", ()), *data.get("plan", {}).get("problems", ())]
    return found + [JobProblem.from_attributes(row) for row in refused]


def exit_code_in(message: str) -> int | None:
    """The job's exit code from the provider's failure message (`SparkSubmitHook.submit`), None when it has none."""
    match = _EXIT_CODE.search(message)
    return int(match.group(1)) if match else None


def failure_of(flow: str, exit_code: int | None, report: JobReport | None) -> MirrorError:
    """The typed error for a job that failed: it decides whether Airflow tries again (`retries.py`)."""
    shown = "; ".join(str(problem) for problem in report.problems[:3]) if report else ""
    failed = report.failed if report else 0
    more = f" (and {failed - 3} more)" if failed > 3 else ""
    if exit_code == ConfigurationError.exit_code:
        what = f"the Spark job of flow {flow} refused its configuration: {shown or 'see the log above'}{more}"
        return ConfigurationError(what, where=NOWHERE, action="Run `mirror config check` on the file.")
    if exit_code == ReplicationError.exit_code:
        what = f"flow {flow} needs a decision for {failed or 'some'} partition(s): {shown or 'see the log above'}{more}"
        return ReplicationError(what, where=NOWHERE, action="All other partitions were copied.")
    what = f"the Spark job of flow {flow} failed: {shown or f'exit code {exit_code}, see the log above'}{more}"
    return ReplicationRunError(what, where=NOWHERE, action="A retry copies what is left.")
