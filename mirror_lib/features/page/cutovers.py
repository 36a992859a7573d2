"""Cutovers: every step in its order, with its attempts, its gates and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, HTTPException, Path

from mirror_lib.errors import ConfigurationError, LedgerError
from mirror_lib.features.cutover.model import CutoverDefinition, StepState, Style
from mirror_lib.features.cutover.order import CONFIRMED, STEPS, WRITERS_GO, WRITERS_STOP
from mirror_lib.features.cutover.states.cutover import choices
from mirror_lib.features.cutover.states.situation import Situation, newest_situations, situation_of
from mirror_lib.features.cutover.tables import cutovers as tables
from mirror_lib.features.page.api_models import Answer, Problem
from mirror_lib.features.page.context import ThePage, TheVisitor, visible
from mirror_lib.former_names import with_present_names
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.airflow_runs import cutover_dag_id_of
from mirror_lib.topology.names import FlowId

router = APIRouter(prefix="/cutovers")


class CutoverUnderWay(Answer):
    """A cutover, and who acts now."""

    name: str
    flow: str
    dag_id: str
    state: str
    step: str
    updated_at: datetime
    #: Who acts, as a sentence.
    who: str
    #: No process acts, and something is left to do.
    unattended: bool
    #: The writers are stopped, and may not write to the target yet.
    writers_wait: bool

    @classmethod
    def of(cls, row: CutoverRow, present: Situation, dag_id: str, **more: object) -> Self:
        """Return a cutover as the page shows it; `more` are attributes of a subclass that the row lacks."""
        return cls.showing(
            row,
            dag_id=dag_id,
            state=present.shown_state(row.state),
            who=present.who,
            unattended=present.state.is_unattended,
            writers_wait=present.state.writers_wait,
            **more,
        )


class CutoverSummary(CutoverUnderWay):
    """A cutover, and what can be done now."""

    created_at: datetime
    created_by: str
    #: One of `runbook.states.State`.
    now: str
    #: The step whose question can be answered now.
    asks: str | None
    #: What an operator can do now.
    choices: list[str]


class Cutovers(Answer):
    """The newest cutovers, newest first."""

    now: datetime
    cutovers: list[CutoverSummary]
    problems: list[Problem]


class Gate(Answer):
    """One gate."""

    name: str
    passed: bool
    what: str
    action: str


class Attempt(Answer):
    """One attempt at a step."""

    number: int
    state: str
    by: str
    started_at: datetime
    finished_at: datetime | None
    seconds: float | None
    gates: list[Gate]
    facts: dict[str, Any]
    error: str | None
    action: str | None


class StepProgress(Answer):
    """One step and all attempts at it."""

    step: str
    #: Of the newest attempt; `to come` before the first.
    state: str
    #: An operator has to confirm it.
    by_person: bool
    attempts: list[Attempt]


class CutoverDetail(Answer):
    """One cutover."""

    now: datetime
    cutover: CutoverSummary
    #: The DAG that continues it; None if Airflow does not have it, or the visitor may not read it.
    cutover_dag_id: str | None
    style: str
    topics: list[str]
    groups: list[str]
    steps: list[StepProgress]
    passed: int
    partitions_cut: int
    #: Seconds from the freeze to the release; increases while the writers are stopped.
    producer_downtime_seconds: float | None
    producers_are_stopped: bool


@router.get("")
def cutovers(here: ThePage, visitor: TheVisitor) -> Cutovers:
    """Return the newest cutovers of all flows that the visitor may read."""
    found: list[CutoverSummary] = []
    problems: list[Problem] = []
    for ledger, dags in _ledgers(here, visitor, problems):
        try:
            newest = newest_situations(ledger)
        except LedgerError as error:
            problems.append(Problem.of(error))
            continue
        found += [_summary(row, present, dags[row.flow]) for row, present in newest if row.flow in dags]
    found.sort(key=lambda each: each.created_at, reverse=True)
    return Cutovers(now=datetime.now(UTC), cutovers=found, problems=problems)


@router.get("/{name}")
def cutover(
    here: ThePage, visitor: TheVisitor, name: Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9._\-]+$")]
) -> CutoverDetail:
    """Return one cutover with its steps."""
    for ledger, dags in _ledgers(here, visitor, []):
        row = tables.Cutovers(ledger).find(name)
        if row is not None and row.flow in dags:
            own_dag = cutover_dag_id_of(FlowId.parse(row.flow))
            has_link = own_dag in here.control.dag_states([own_dag]) and own_dag in visitor.readable([own_dag])
            return _detail(row, dags[row.flow], ledger, datetime.now(UTC), own_dag if has_link else None)
    raise HTTPException(404, f"There is no cutover {name}, or you have no permission to read its flow.")


def _ledgers(here: ThePage, visitor: TheVisitor, problems: list[Problem]) -> list[tuple[Ledger, Mapping[str, str]]]:
    """Return each ledger with the visitor's flows in it: flow -> DAG."""
    found: dict[int, tuple[Ledger, dict[str, str]]] = {}
    for flow in visible(here.flows.read().flows, visitor):
        try:
            ledger = here.flows.ledger(flow.config)
        except LedgerError as error:
            problem = Problem.of(error)
            if problem not in problems:
                problems.append(problem)
            continue
        if ledger is not None:
            found.setdefault(id(ledger), (ledger, {}))[1][flow.name] = flow.dag_id
    return list(found.values())


def _summary(row: CutoverRow, present: Situation, dag_id: str) -> CutoverSummary:
    question = present.state.question
    return CutoverSummary.of(
        row,
        present,
        dag_id,
        now=present.state.value,
        asks=None if question is None else question.value,
        choices=[event.value for event in choices(present.state)],
    )


def _detail(row: CutoverRow, dag_id: str, ledger: Ledger, now: datetime, own_dag: str | None) -> CutoverDetail:
    attempts: dict[str, list[Attempt]] = {}
    for each in tables.Cutovers(ledger).steps(row.name):
        attempts.setdefault(each.step, []).append(_attempt(each))
    try:
        definition: CutoverDefinition | None = CutoverDefinition.from_dict(row.definition)
    except (ConfigurationError, ValueError, TypeError):
        # Written by a newer version: the readable part is shown.
        definition = None
    style = Style.TOGETHER if definition is None else definition.style
    known = [step.value for step in STEPS[style]]
    ordered = [*known, *(step for step in attempts if step not in known)]
    present = situation_of(ledger, row.name)
    steps = [_progress(step, attempts.get(step, []), present) for step in ordered]
    stopped_seconds, is_stopped = _writers_stopped(attempts, now)
    return CutoverDetail(
        now=now,
        cutover=_summary(row, present, dag_id),
        cutover_dag_id=own_dag,
        style=style.value,
        topics=[] if definition is None else list(definition.topics),
        groups=[] if definition is None else list(definition.groups),
        steps=steps,
        passed=sum(step.state == StepState.PASSED for step in steps),
        partitions_cut=len(ledger.handovers.cuts(row.name)),
        producer_downtime_seconds=stopped_seconds,
        producers_are_stopped=is_stopped,
    )


def _progress(step: str, attempts: Sequence[Attempt], present: Situation) -> StepProgress:
    ordered = sorted(attempts, key=lambda attempt: attempt.number)
    if ordered:
        state = present.shown_step_state(ordered[-1].state)
        ordered[-1] = ordered[-1].model_copy(update={"state": state})
    return StepProgress(
        step=step,
        state=ordered[-1].state if ordered else "to come",
        by_person=step in {each.value for each in CONFIRMED},
        attempts=ordered,
    )


def _attempt(row: tables.CutoverStepRow) -> Attempt:
    error = row.error or {}
    return Attempt(
        number=row.attempt,
        state=row.state,
        by=row.by,
        started_at=row.started_at,
        finished_at=row.finished_at,
        seconds=None if row.finished_at is None else (row.finished_at - row.started_at).total_seconds(),
        gates=[
            Gate(
                name=str(gate.get("name", "")),
                passed=bool(gate.get("passed")),
                what=str(gate.get("what", "")),
                action=str(gate.get("action", "")),
            )
            for gate in row.gates
        ],
        facts=with_present_names(row.facts),
        error=None
        if not error
        else str(error.get("what") or error.get("reason") or "failed, without an error message"),
        action=str(error["action"]) if error.get("action") else None,
    )


def _writers_stopped(attempts: Mapping[str, Sequence[Attempt]], now: datetime) -> tuple[float | None, bool]:
    """Return how long the writers have been stopped, and whether they still are."""
    stop, go = (_passed_at(attempts.get(step.value, ())) for step in (WRITERS_STOP, WRITERS_GO))
    if stop is None:
        return None, False
    if go is None or go < stop:
        return (now - stop).total_seconds(), True
    return (go - stop).total_seconds(), False


def _passed_at(attempts: Sequence[Attempt]) -> datetime | None:
    last = max(attempts, key=lambda attempt: attempt.number, default=None)
    return last.finished_at if last is not None and last.state == StepState.PASSED else None
