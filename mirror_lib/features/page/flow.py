"""One flow: its state, its lag and its throughput over time, its runs, heartbeats, sync steps and audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from mirror_lib.features.page.airflow_audit import what_ended
from mirror_lib.features.page.api_models import Answer, Duration, May, Seen
from mirror_lib.features.page.context import TheFlow, ThePage
from mirror_lib.features.page.control import RunAct
from mirror_lib.features.page.flow_state import run_state
from mirror_lib.features.page.limits import Kind
from mirror_lib.features.page.overview import FlowOverview, facts_of
from mirror_lib.features.page.security import limit_requests
from mirror_lib.ledger.observed_rows import FlowObservationRow
from mirror_lib.ledger.rows import RunRow

#: The task that copies.
_COPIES = "replicate"
#: A plot has no room for more points.
_POINTS = 400
_DIED = {
    "what": "The run died: its process was killed, or its host is down.",
    "action": "The next run continues from the stored positions.",
}

router = APIRouter(prefix="/flows/{dag_id}")


class FlowSettings(Answer):
    """The configuration of a flow, without secrets."""

    topics: list[str]
    topics_exclude: list[str]
    groups: list[str]
    replication_policy: str
    schedule: str | None
    verify_schedule: str | None
    poison_policy: str
    group_translation: str
    isolation_level: str
    #: `same`: target records have the offsets of their source records.
    offsets: str
    failback: bool
    config_file: str


class FlowDetail(Answer):
    """The state of one flow."""

    now: datetime
    flow: FlowOverview
    verify_dag_id: str
    #: True if Airflow has the DAG of its verification.
    can_be_verified: bool
    may: May
    settings: FlowSettings


class LagPoint(Answer):
    """The lag of the flow at one moment."""

    at: datetime
    records: int
    bytes: int | None
    seconds: Duration
    writes_per_second: float | None
    lagging: int
    stalled: int


class RunPoint(Answer):
    """One run and what it copied."""

    id: str
    state: str
    trigger: str
    started_at: datetime
    finished_at: datetime | None
    heartbeat_at: datetime
    seconds: float
    rounds: int
    partitions: int
    records: int
    bytes: int
    #: While it ran; None when it copied nothing.
    records_per_second: float | None
    bytes_per_second: float | None
    #: The error, as a sentence.
    error: str | None
    action: str | None
    #: Airflow's run that it belongs to.
    airflow_run: str | None
    #: Who marked, cleared or deleted the DAG run meanwhile, as a sentence; None also if this may not be read.
    ended_by: str | None


class History(Answer):
    """A flow over time, oldest first."""

    now: datetime
    since: datetime
    lag: list[LagPoint]


class Runs(Answer):
    """A flow's newest runs, newest first."""

    now: datetime
    runs: list[RunPoint]


class Heartbeat(Answer):
    """The heartbeats found between two clusters."""

    pair: str
    verdict: str
    emitted_at: datetime | None
    detail: str | None
    seen: Seen


class Heartbeats(Answer):
    """All pairs of clusters whose heartbeats reach the flow's target."""

    now: datetime
    heartbeats: list[Heartbeat]


class StepOutcome(Answer):
    """The latest result of a sync step."""

    step: str
    differences: int
    failed: int
    skipped: str | None
    #: Counts by name.
    counts: dict[str, int]
    #: Rejections by a cluster, and other sentences.
    problems: list[str]
    seen: Seen


class Steps(Answer):
    """The latest outcome of every step."""

    now: datetime
    steps: list[StepOutcome]


class AuditEntry(Answer):
    """An entry of the audit log."""

    at: datetime
    by: str
    action: str
    subject: str
    detail: dict[str, Any]


class AuditTrail(Answer):
    """A flow's audit log, newest first."""

    now: datetime
    entries: list[AuditEntry]


@router.get("")
def flow(here: ThePage, looked: TheFlow) -> FlowDetail:
    """Return the state of the flow, and the visitor's permissions."""
    served, visitor = looked.flow, looked.visitor
    states = here.control.dag_states([served.dag_id, served.verify_dag_id])
    settings = served.settings
    run = visitor.may_trigger(served.dag_id)
    return FlowDetail(
        now=looked.now,
        flow=facts_of(served, looked.ledger, states.get(served.dag_id), looked.now),
        verify_dag_id=served.verify_dag_id,
        can_be_verified=served.verify_dag_id in states,
        may=May(
            pause=visitor.may_pause(served.dag_id),
            run=run,
            verify=visitor.may_trigger(served.verify_dag_id),
            decide=run and visitor.may_pause(served.dag_id),
        ),
        settings=FlowSettings(
            topics=list(settings.topics),
            topics_exclude=list(settings.topics_exclude),
            groups=list(settings.groups),
            replication_policy=settings.replication_policy_class.rpartition(".")[2],
            schedule=settings.schedule,
            verify_schedule=settings.verify_schedule,
            poison_policy=settings.copy_settings.poison_policy.value,
            group_translation=settings.group_translation.value,
            isolation_level=settings.isolation_level.value,
            offsets=settings.copy_settings.offsets.value,
            failback=settings.failback,
            config_file=served.config.path,
        ),
    )


@router.get("/history", dependencies=[Depends(limit_requests(Kind.LISTS))])
def history(looked: TheFlow, hours: Annotated[float, Query(gt=0, le=24 * 30)] = 24) -> History:
    """Return the lag in records, bytes and seconds. Of many points, the worst of each span of time is returned."""
    since = looked.now - timedelta(hours=hours)
    rows = () if looked.ledger is None else looked.ledger.observations.history(looked.flow.name, since)
    return History(now=looked.now, since=since, lag=[_point(row) for row in thin(rows, _POINTS)])


@router.get("/runs")
def runs(here: ThePage, looked: TheFlow, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> Runs:
    """Return the newest runs."""
    if looked.ledger is None:
        return Runs(now=looked.now, runs=[])
    rows = looked.ledger.runs(looked.flow.name, limit)
    dead = looked.ledger.dead_runs(rows)
    acts = _acts(here, looked, rows)
    return Runs(now=looked.now, runs=[_run(row, looked.now, acts, died=row.id in dead) for row in rows])


def _acts(here: ThePage, looked: TheFlow, rows: Sequence[RunRow]) -> tuple[RunAct, ...]:
    dag_id, dag_runs = looked.flow.dag_id, {dag_run for row in rows if (dag_run := _dag_run(row)) is not None}
    if not dag_runs or not looked.visitor.may_read_audit(dag_id):
        return ()
    return here.control.run_acts(dag_id, dag_runs, _COPIES)


@router.get("/heartbeats")
def heartbeats(looked: TheFlow) -> Heartbeats:
    """Return the heartbeats that reach the flow's target."""
    rows = () if looked.ledger is None else looked.ledger.observations.heartbeats(looked.flow.name)
    return Heartbeats(
        now=looked.now,
        heartbeats=[Heartbeat.showing(row, seen=looked.seen_at(row.observed_at)) for row in rows],
    )


@router.get("/steps")
def steps(looked: TheFlow) -> Steps:
    """Return the latest results of the sync steps: drift, and rejections."""
    rows = () if looked.ledger is None else looked.ledger.observations.steps(looked.flow.name)
    return Steps(
        now=looked.now,
        steps=[
            StepOutcome.showing(
                row,
                counts={
                    str(name): value
                    for name, value in row.summary.items()
                    if isinstance(value, int) and not isinstance(value, bool)
                },
                problems=_sentences(row.summary.get("problems")) + _sentences(row.summary.get("notices")),
                seen=looked.seen_at(row.finished_at),
            )
            for row in rows
        ],
    )


@router.get("/audit")
def audit(looked: TheFlow, limit: Annotated[int, Query(ge=1, le=500)] = 100) -> AuditTrail:
    """Return the flow's audit log."""
    rows = () if looked.ledger is None else looked.ledger.audits.newest(looked.flow.name, limit)
    return AuditTrail(
        now=looked.now,
        entries=[
            AuditEntry(at=row.at, by=row.by, action=row.action, subject=row.subject, detail=dict(row.detail))
            for row in rows
        ],
    )


def thin(rows: Sequence[FlowObservationRow], most: int) -> list[FlowObservationRow]:
    """Return at most `most` rows: of each span of neighbours the one with the largest lag, and always the newest."""
    if len(rows) <= most:
        return list(rows)
    *older, newest = rows
    each = -(-len(older) // (most - 1))
    spans = (older[first : first + each] for first in range(0, len(older), each))
    return [*(max(span, key=lambda row: row.records_behind) for span in spans), newest]


def _point(row: FlowObservationRow) -> LagPoint:
    return LagPoint(
        at=row.observed_at,
        records=row.records_behind,
        bytes=row.bytes_behind,
        seconds=row.seconds_behind,
        writes_per_second=row.writes_per_second,
        lagging=row.lagging,
        stalled=row.stalled,
    )


def _dag_run(row: RunRow) -> str | None:
    """Return the DAG run of a run."""
    word, _, dag_run = row.trigger.partition(" ")
    return dag_run.partition(" ")[2] or None if word == "airflow" else None


def _run(row: RunRow, now: datetime, acts: Sequence[RunAct], *, died: bool = False) -> RunPoint:
    seconds = max(((row.finished_at or now) - row.started_at).total_seconds(), 0.0)
    copied = seconds > 0 and row.records > 0
    dag_run = _dag_run(row)
    error = row.error or (_DIED if died else {})
    act = what_ended(row, dag_run, acts)
    return RunPoint.showing(
        row,
        state=run_state(row, died),
        seconds=seconds,
        partitions=row.planned_partitions,
        records_per_second=row.records / seconds if copied else None,
        bytes_per_second=row.bytes / seconds if copied else None,
        error=None
        if not error
        else str(error.get("what") or error.get("reason") or "failed, without an error message"),
        action=str(error["action"]) if error.get("action") else None,
        airflow_run=dag_run,
        ended_by=None if act is None else f"{act.by} {act.what} in Airflow.",
    )


def _sentences(found: object) -> list[str]:
    return [str(each) for each in found][:20] if isinstance(found, list) else []
