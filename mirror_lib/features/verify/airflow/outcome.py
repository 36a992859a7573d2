"""The outcome of a verification for Airflow: XCom, log lines, and whether it is retried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mirror_lib.airflow.spark.outcome import without_report
from mirror_lib.copy.job.report import Failure, read_report
from mirror_lib.errors import (
    BrokerUnreachableError,
    ConfigurationError,
    MirrorError,
    RetriesExhaustedError,
    TopicMissingError,
    TransientError,
)
from mirror_lib.features.verify.report import DIFFERENT

#: XCom is not made for a hundred thousand partitions; the ledger has them all.
_KEPT = 20
_SHOWN = 3
#: Reasons that usually pass without action. A topic that was created since the last run is missing on the target until
#: the next one.
_PASSING = frozenset(
    error.reason for error in (BrokerUnreachableError, RetriesExhaustedError, TopicMissingError, TransientError)
)
_COUNTS = ("records", "source_bytes", "difference_count", "equal", "different", "unverifiable", "idle_partitions")


class PartitionsDifferError(MirrorError):
    """The target differs from the copy that was made: an operator must find the cause."""

    reason = "partitions-differ"
    exit_code = 3


class NotVerifiableError(MirrorError):
    """Some partitions cannot be compared, and a retry would not change that."""

    reason = "not-verifiable"
    exit_code = 3


class NotVerifiedError(MirrorError):
    """A temporary problem prevented a verification."""

    reason = "not-verified"
    retriable = True


@dataclass(frozen=True, slots=True)
class VerifyOutcome:
    """The report file of a verification, as far as Airflow shows it. It holds no record content."""

    exit_code: int
    #: Why the job failed as a whole; nothing was compared then.
    error: Failure | None
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the report at `path`; return None if there is no whole one (`read_report`)."""
        content = read_report(path)
        if content is None:
            return None
        error = Failure.from_attributes(content["error"]) if "error" in content else None
        return cls(content["exit_code"], error, content)

    def partitions(self, verdict: str) -> tuple[Mapping[str, Any], ...]:
        """Return the reported partitions with the verdict, including routed target partitions."""
        rows = (*self.content.get("partitions", ()), *self.content.get("routed", ()))
        return tuple(row for row in rows if row["verdict"] == verdict)

    @property
    def differences(self) -> Iterator[str]:
        """Yield the stored differences, partition by partition: where, and which part of the record."""
        for row in self.partitions("different"):
            for each in row["differences"]:
                offsets = ", ".join(
                    f"{side} offset {each[f'{side}_offset']}"
                    for side in ("source", "target")
                    if each[f"{side}_offset"] is not None
                )
                what = f" ({', '.join(each['what'])})" if each["what"] else ""
                yield f"{_place(row)}: {each['kind']} at {offsets}{what}"

    @property
    def obstacles(self) -> Iterator[str]:
        """Yield why partitions could not be compared."""
        for row in self.partitions("unverifiable"):
            yield f"[{row['reason']}] {_place(row)}: {row['detail']}"

    def xcom_value(self) -> dict[str, Any]:
        """Return counts and the first findings, as plain data."""
        if self.error is not None:
            return {"exit_code": self.exit_code, "error": f"[{self.error.reason}] {self.error.what}"}
        return {
            "exit_code": self.exit_code,
            "verification_id": self.content["verification_id"],
            "mode": self.content["mode"],
            "result": self.content["result"],
            "seconds": self.content["seconds"],
            **{name: self.content[name] for name in _COUNTS},
            "differences": list(self.differences)[:_KEPT],
            "not_verified": list(self.obstacles)[:_KEPT],
        }

    def lines(self) -> Iterator[str]:
        """Yield lines for the task's log in addition to the job's own output."""
        if self.error is not None:
            return
        yield f"Verification {self.content['verification_id']} ({self.content['mode']}): {self.content['result']}"
        for found in (list(self.differences), list(self.obstacles)):
            yield from found[:_KEPT]
            if len(found) > _KEPT:
                yield f"... and {len(found) - _KEPT} more: see `mirror verify` or the ledger."


def failure_of(flow: str, exit_code: int | None, outcome: VerifyOutcome | None) -> MirrorError:
    """Return the typed error for a verification that did not find all equal: it decides if Airflow retries.

    Args:
        exit_code: of the job, None if it is unknown too.
        outcome: None if the job left no report.
    """
    error = outcome.error if outcome is not None else None
    if outcome is None or error is not None:
        what = f"{error.what} {error.action}".rstrip() if error is not None else without_report(exit_code)
        if exit_code == ConfigurationError.exit_code:
            return ConfigurationError(
                f"the verification of flow {flow} rejected its configuration: {what}",
                action="Check the file with `mirror config check`.",
            )
        kind = (
            NotVerifiableError if exit_code == NotVerifiableError.exit_code and error is not None else NotVerifiedError
        )
        return kind(f"the verification of flow {flow} failed: {what}")
    if exit_code == DIFFERENT:
        return PartitionsDifferError(
            f"flow {flow}: {outcome.content['result']} {_first(list(outcome.differences))}",
            action="`mirror verify --topics ... --mode full` shows all differences of a partition.",
        )
    obstacles = outcome.partitions("unverifiable")
    first = _first(list(outcome.obstacles))
    if any(row["reason"] in _PASSING for row in obstacles):
        return NotVerifiedError(f"flow {flow}: {outcome.content['result']} {first}")
    return NotVerifiableError(f"flow {flow}: {outcome.content['result']} {first}")


def _first(found: list[str]) -> str:
    more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"
