"""The Spark job's report file: how the job writes it, and how the starter of the job reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mirror_lib.errors import NOWHERE, MirrorError, Where
from mirror_lib.former_names import with_present_names
from mirror_lib.private_files import write_private

if TYPE_CHECKING:
    from mirror_lib.planning.model import RunPlan

_PLACES = tuple(part.name for part in fields(Where))
_OWN = frozenset({"reason", "what", "action", *_PLACES})


def plan_report(plan: RunPlan) -> dict[str, Any]:
    """The content for a dry run."""
    return {"exit_code": 0, "dry_run": True, "plan": plan.to_dict()}


def error_report(error: MirrorError) -> dict[str, Any]:
    """The content for a job that failed as a whole."""
    return {"exit_code": error.exit_code, "error": error.attributes()}


def without_details(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content without rows of partitions that were copied without problems, and without rounds: the ledger has
    them all.
    """
    found = dict(content)
    found.pop("round_lags", None)
    if "partitions" in found:
        found["partitions"] = [row for row in found["partitions"] if row["error"] is not None or row.get("poison")]
    return found


def write_report(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file, and create its folder.

    Args:
        content: of `error_report`, `plan_report` or `RunReport.to_dict`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, json.dumps(content, indent=2) + "\n")


def read_report(path: Path) -> dict[str, Any] | None:
    """Return what `write_report` wrote; None if the job ended before that, was killed, or its disk was full."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return content


@dataclass(frozen=True, slots=True)
class Failure:
    """A `MirrorError` as stored in reports: the reader need not know the class that was raised."""

    reason: str
    what: str
    action: str = ""
    #: Its partition is None for a whole topic.
    where: Where = NOWHERE
    #: Further attributes of an error's class, such as all problems of a file.
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_attributes(cls, data: Mapping[str, Any]) -> Self:
        """The counterpart of `MirrorError.attributes`."""
        return cls(
            reason=data["reason"],
            what=data["what"],
            action=data.get("action", ""),
            where=Where(**{name: data[name] for name in _PLACES if name in data}),
            more={name: value for name, value in data.items() if name not in _OWN},
        )


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """The part of a dry run's plan for one topic. The number of offsets is an upper bound: some may have no record."""

    topic: str
    target_topic: str
    partitions: int
    offsets: int
    estimated_bytes: int


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """Source offsets [first_offset, next_offset) that the flow's policy has skipped."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    #: None if damage hides the number.
    records: int | None
    #: Reason code of their error.
    cause: str
    detail: str
    #: Whether the quarantine topic has them.
    quarantined: bool

    def __str__(self) -> str:
        last = self.next_offset - 1
        offsets = f"offset {last}" if last == self.first_offset else f"offsets {self.first_offset} to {last}"
        kept = "in the quarantine topic" if self.quarantined else "skipped"
        return f"[{self.cause}] {self.topic}-{self.partition}, {offsets} ({kept}): {self.detail}"


@dataclass(frozen=True, slots=True)
class JobReport:
    """The result of one job, without its rows per partition: those are in the ledger."""

    exit_code: int
    #: None if the job failed as a whole or only planned.
    run_id: str | None = None
    dry_run: bool = False
    records: int = 0
    bytes: int = 0
    rounds: int = 0
    #: Partitions with nothing new.
    idle: int = 0
    seconds: float = 0.0
    #: Seconds of the copy stage alone, over all rounds.
    copy_seconds: float = 0.0
    #: Why the job failed as a whole; all numbers are then 0.
    error: Failure | None = None
    #: Partitions, or whole topics, that were not copied, or not to their end; in a dry run, that could not be.
    failures: tuple[Failure, ...] = ()
    #: A dry run's plan, added up per topic.
    planned: tuple[PlannedTopic, ...] = ()
    #: Records that the flow's policy skipped; an unreadable batch counts as one.
    skipped: int = 0
    skipped_ranges: tuple[SkippedRange, ...] = ()
    #: Source offsets that were lost before the copy and skipped as the run was asked to.
    lost: int = 0
    #: Rows of `RoundRow.to_dict` for the rounds that had something to copy.
    round_lags: tuple[Mapping[str, Any], ...] = ()
    #: Warnings of the plans, such as partitions for which the run waited.
    warnings: tuple[str, ...] = ()
    #: Copied partitions in which deletions may be lost.
    deletions: tuple[Failure, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The report at `path`, None if there is no whole one (`read_report`)."""
        content = read_report(path)
        return None if content is None else cls.from_dict(content)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Parse the output of `error_report`, `plan_report` or `RunReport.to_dict`."""
        data = with_present_names(data)
        if "error" in data:
            return cls(exit_code=data["exit_code"], error=Failure.from_attributes(data["error"]))
        if data.get("dry_run"):
            plan = data["plan"]
            return cls(
                exit_code=data["exit_code"],
                dry_run=True,
                idle=plan["idle_partitions"],
                failures=tuple(_at_source(row, row) for row in plan["problems"]),
                planned=tuple(_planned_topics(plan["partitions"])),
                warnings=tuple(plan.get("warnings", ())),
            )
        return cls(
            exit_code=data["exit_code"],
            run_id=data["run_id"],
            records=data["records"],
            bytes=data["bytes"],
            rounds=data["rounds"],
            idle=data["idle_partitions"],
            seconds=data["seconds"],
            copy_seconds=data["copy_seconds"],
            failures=tuple(_failures(data)),
            skipped=data.get("skipped", 0),
            skipped_ranges=tuple(_skipped_ranges(data["partitions"])),
            lost=data.get("lost", 0),
            round_lags=tuple(data.get("round_lags", ())),
            deletions=tuple(_at_source(row, row) for row in data.get("deletions", ())),
            warnings=tuple(data.get("warnings", ())),
        )


def _failures(data: Mapping[str, Any]) -> Iterator[Failure]:
    for row in data["partitions"]:
        if row["error"] is not None:
            yield _at_source(row, row["error"])
    for row in data["problems"]:
        yield _at_source(row, row)


def _skipped_ranges(partitions: Iterable[Mapping[str, Any]]) -> Iterator[SkippedRange]:
    for row in partitions:
        for poison in row.get("poison", ()):
            yield SkippedRange(topic=row["topic"], partition=row["partition"], **poison)


def _at_source(row: Mapping[str, Any], attributes: Mapping[str, Any]) -> Failure:
    """A failure at the source partition that its row names, regardless of the error's own location."""
    # Its module loads the clients' security, and DAGs are parsed every few seconds.
    from mirror_lib.planning.model import WHOLE_TOPIC

    partition = None if row["partition"] == WHOLE_TOPIC else row["partition"]
    return Failure.from_attributes({**attributes, "topic": row["topic"], "partition": partition})


def _planned_topics(partitions: Iterable[Mapping[str, Any]]) -> Iterator[PlannedTopic]:
    by_topic: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in partitions:
        by_topic.setdefault((row["topic"], row["target_topic"]), []).append(row)
    for names, rows in sorted(by_topic.items()):
        yield PlannedTopic(
            *names,
            partitions=len(rows),
            offsets=sum(row["end"] - row["start"] for row in rows),
            estimated_bytes=sum(row["estimated_bytes"] for row in rows),
        )
