"""The state of a flow in one word, with the reasons. Pure.

Health is progress against the source's end: a run that continues proves nothing, and a failed run does not matter while
everything is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mirror_lib.features.page.api_models import Answer
from mirror_lib.ledger.observed_rows import FlowObservationRow
from mirror_lib.ledger.rows import RunRow, RunState
from mirror_lib.past_runs.outlooks import Outlook


class Level(StrEnum):
    """Severity, worst first."""

    DANGER = "danger"
    WARNING = "warning"
    #: The present state is unknown: no run yet, none for long, or the flow is paused.
    IDLE = "idle"
    OK = "ok"


class FlowState(Answer):
    """The state of a flow in one word."""

    level: Level
    word: str
    #: Sentences; the first explains the word.
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """The facts that determine the state."""

    now: datetime
    stale_after_seconds: float
    observation: FlowObservationRow | None = None
    run: RunRow | None = None
    #: True if that run died.
    died: bool = False
    #: True if its DAG is paused; None if Airflow has no such DAG.
    paused: bool | None = False
    open_gaps: int = 0
    #: Some topics of these gaps, by name.
    gap_topics: Sequence[str] = ()
    #: Partitions whose latest comparison found a difference.
    different: int = 0
    failed_steps: int = 0
    #: True if its configuration file has errors.
    broken: bool = False


def judge(facts: FlowFacts) -> FlowState:
    """Return the state of a flow: the worst of the findings."""
    found = [*_dangers(facts), *_warnings(facts), *_idle(facts)]
    if not found:
        lagging = facts.observation is not None and facts.observation.records_behind > 0
        word = "copying" if _is_running(facts) else "small lag" if lagging else "up to date"
        return FlowState(level=Level.OK, word=word)
    level, word, _ = found[0]
    return FlowState(level=level, word=word, reasons=tuple(reason for _, _, reason in found))


#: Replaces `running`, for a run that died.
DIED = "died"


def run_state(run: RunRow, died: bool) -> str:
    """Return the displayed state of a run."""
    return DIED if died else run.state


_NAMED = 3
_Finding = tuple[Level, str, str]


def _dangers(facts: FlowFacts) -> list[_Finding]:
    found: list[_Finding] = []
    seen = facts.observation
    if facts.broken:
        found.append((Level.DANGER, "broken file", "The configuration file has errors: every run fails."))
    if seen is not None and seen.outlook == Outlook.ALREADY_LOST:
        found.append((Level.DANGER, "records lost", "Retention deleted records before they were copied."))
    if seen is not None and seen.outlook == Outlook.WILL_BE_LOST:
        found.append((Level.DANGER, "falling behind", "Retention will delete records before they are copied."))
    if facts.different:
        found.append((Level.DANGER, "differs", f"Source and target differ in {_partitions(facts.different)}."))
    if facts.open_gaps:
        gaps = "1 open gap needs" if facts.open_gaps == 1 else f"{facts.open_gaps:,} open gaps need"
        named = ", ".join(facts.gap_topics[:_NAMED]) + (", ..." if len(facts.gap_topics) > _NAMED else "")
        found.append((Level.DANGER, "decision needed", f"{gaps} a decision{f' ({named})' if named else ''}."))
    if seen is not None and seen.stalled:
        found.append((Level.DANGER, "stalled", f"{_partitions(seen.stalled)} stalled."))
    if facts.run is not None and facts.run.state == RunState.FAILED:
        reason = (facts.run.error or {}).get("reason")
        found.append((Level.DANGER, "failed", f"The last run failed: {reason}." if reason else "The last run failed."))
    return found


def _warnings(facts: FlowFacts) -> list[_Finding]:
    found: list[_Finding] = []
    seen = facts.observation
    if facts.run is not None and facts.run.state == RunState.PARTIAL:
        found.append((Level.WARNING, "partly failed", "The last run did not copy all partitions."))
    if facts.died:
        found.append(
            (Level.WARNING, "run died", "The last run died. The next run continues from the stored positions.")
        )
    if seen is not None and seen.outlook == Outlook.TIGHT:
        found.append((Level.WARNING, "tight", "Retention may delete records soon after they are copied, or before."))
    if facts.failed_steps:
        steps = "A sync step" if facts.failed_steps == 1 else f"{facts.failed_steps} sync steps"
        found.append((Level.WARNING, "sync step failed", f"{steps} failed: a cluster rejected a request."))
    if seen is not None and not facts.paused and _age(facts, seen.observed_at) > facts.stale_after_seconds:
        found.append((Level.WARNING, "overdue", "No run has finished for more than three schedule intervals."))
    return found


def _idle(facts: FlowFacts) -> list[_Finding]:
    found: list[_Finding] = []
    if facts.paused is None:
        found.append((Level.IDLE, "no DAG", "Airflow has not parsed the flow's DAG."))
    if facts.paused:
        found.append((Level.IDLE, "paused", "The flow's DAG is paused: no scheduled run starts."))
    if facts.run is None and facts.observation is None:
        found.append((Level.IDLE, "never ran", "No runs recorded yet."))
    elif facts.observation is None and not _is_running(facts):
        found.append((Level.IDLE, "not observed", "The lag has not been observed yet."))
    return found


def _is_running(facts: FlowFacts) -> bool:
    """Return True if a run is active."""
    run = facts.run
    return run is not None and run.state == RunState.RUNNING and not facts.died


def _age(facts: FlowFacts, at: datetime) -> float:
    return (facts.now - at).total_seconds()


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count:,} partitions"
