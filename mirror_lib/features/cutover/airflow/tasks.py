"""Python tasks of a cutover's DAG; one Spark job in parallel with them copies and compares."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow import ENDED_STATES, AirflowFailException, AirflowSkipException, task_state
from mirror_lib.config.loader import load
from mirror_lib.features.cutover.airflow.approval import PASSED, PATIENCE_SECONDS, Answer, answer_to
from mirror_lib.features.cutover.airflow.form import ROLL_BACK, definition_from, refuse_other_values
from mirror_lib.features.cutover.airflow.patient_load import load_patiently
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.job import as_data
from mirror_lib.features.cutover.machine import Machine, create, progress
from mirror_lib.features.cutover.model import CutoverState, Step
from mirror_lib.features.cutover.opening import failback_of, open_cutover
from mirror_lib.features.cutover.order import comes_before, last_attempts
from mirror_lib.features.cutover.records import attempts_of
from mirror_lib.features.cutover.report import gates_markdown, progress_text, sentence
from mirror_lib.features.cutover.states import situation
from mirror_lib.features.cutover.states.cutover import Event
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.printable import Lines
from mirror_lib.topology.names import FlowId

if TYPE_CHECKING:
    from mirror_lib.config.model import MirrorConfig
    from mirror_lib.features.cutover.machine import Progress
    from mirror_lib.features.cutover.model import CutoverDefinition
    from mirror_lib.features.cutover.tables.carriers import CarrierRow, QuestionRow
    from mirror_lib.ledger.store import Ledger

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
#: XCom key under which a task that waited for a question stores the process that asked it.
_ASKED = "asked"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def begin(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> str:
    """Define the cutover, find it, or roll it back; return its name."""
    run = context["dag_run"]
    name = (params.get("name") or "").strip() or _NOT_IN_NAMES.sub("-", run.run_id)[:100].strip("-.")
    by = _person(context)
    if params.get("action") == ROLL_BACK:
        with _cutover_context(flow, config_path, name, by) as cutover_context:
            _take_back(cutover_context)
        raise AirflowSkipException(f"cutover {name} was rolled back.")
    config = load(Path(config_path))
    with open_ledger(config) as ledger:
        if Cutovers(ledger).find(name) is not None:
            refuse_other_values(params, open_cutover(ledger, name, flow=flow))
        else:
            back_of = (params.get("back_of") or "").strip()
            home = _way_home(config, ledger, flow, back_of, name) if back_of else None
            definition = home or definition_from(params, flow, name)
            create(
                ledger,
                definition,
                by=by,
                context=CutoverContext(definition=definition, config=config, ledger=ledger, by=by),
            )
        present = progress(ledger, open_cutover(ledger, name, flow=flow))
    _log.info("%s", Lines(progress_text(present)))
    if present.present.state.has_ended:
        situation.require(present.present, Event.TRIGGER)
    return name


def _way_home(config: MirrorConfig, ledger: Ledger, flow: str, back_of: str, name: str) -> CutoverDefinition:
    open_cutover(ledger, back_of, flow=str(FlowId.parse(flow).opposite))
    return failback_of(config, ledger, back_of, name)


def _take_back(cutover_context: CutoverContext) -> None:
    undone = roll_back(cutover_context)
    for gate in undone:
        _log.info("%s", gate)
    if not all(gate.passed for gate in undone):
        raise AirflowFailException("not everything was rolled back: " + "; ".join(map(str, undone)))


def prepare(flow: str, config_path: str, name: str, **context: Any) -> str:
    """Do the steps up to preflight; return the gates as text."""
    with _cutover_context(flow, config_path, name, _person(context)) as cutover_context:
        done = Machine(cutover_context).run(until=Step.PREFLIGHT)
    _log.info("%s", Lines(progress_text(done)))
    _stop_at_failure(done)
    return gates_markdown(done)


def await_question(step: str, flow: str, config_path: str, name: str, carried_by: str, **context: Any) -> str:
    """Wait until the process of this run asks for an answer, or is past that step; return the gates found until then.

    An ended process of an earlier DAG run does not count. If the task of the Spark job was cleared, it starts a new
    process, which checks all gates again before it asks.
    """
    with _cutover_context(flow, config_path, name, _person(context)) as cutover_context:
        while True:
            # Airflow first: a process records its end before its task ends.
            is_carried = _is_carried(context, carried_by)
            done = _progress(cutover_context)
            question, carrier = done.present.question, _carrier(done, context)
            if _has_finished(done) or _is_past(done, carrier, step):
                context["ti"].xcom_push(key=PASSED, value=_already(step))
                return gates_markdown(done)
            if carrier is None and not is_carried:
                raise AirflowFailException(f"{progress_text(done)}\n{_again(done, carried_by)}")
            if carrier is not None and question is not None and question.step == step:
                context["ti"].xcom_push(key=_ASKED, value=question.carrier)
                return gates_markdown(done)
            if carrier is not None and question is not None:
                _refuse_without_process(cutover_context, question, carried_by)
            time.sleep(_POLL_SECONDS)


def answer(
    step: str,
    flow: str,
    config_path: str,
    name: str,
    asked_by: str,
    carried_by: str,
    patience_seconds: float = PATIENCE_SECONDS,
    **context: Any,
) -> str:
    """Pass the operator's answer on to the Spark job, unless the step was confirmed before.

    A question that failed without an answer counts as No: otherwise the Spark job would wait for an answer that cannot
    come.
    """
    if context["ti"].xcom_pull(task_ids=f"gates_of_{step}", key=PASSED):
        return _already(step)
    with _cutover_context(flow, config_path, name, "Airflow") as cutover_context:
        done = _await_process(cutover_context, step, carried_by, context)
        question = done.present.question
        is_open = question is not None and question.step == step and question.answer is None
        given = answer_to(context["ti"], asked_by, patience_seconds if is_open else 0.0)
        if question is None or not is_open:
            return _had_been_answered(done, step, given)
        shown_by = context["ti"].xcom_pull(task_ids=f"gates_of_{step}", key=_ASKED)
        return _pass_on(cutover_context, question, given, asked_by, is_other=shown_by not in (None, question.carrier))


def _await_process(cutover_context: CutoverContext, step: str, carried_by: str, context: Mapping[str, Any]) -> Progress:
    """Wait until the process of this run asks, or is past the step.

    Raises:
        AirflowFailException: no process carries the cutover out.
    """
    while True:
        is_carried = _is_carried(context, carried_by)
        done = _progress(cutover_context)
        question, carrier = done.present.question, _carrier(done, context)
        if _has_finished(done) or _is_past(done, carrier, step):
            return done
        if carrier is not None and question is not None and question.step == step:
            return done
        if carrier is None and not is_carried:
            raise AirflowFailException(
                f"cutover {done.definition.name} has no running process: an answer would have no effect. "
                f"{_again(done, carried_by)}"
            )
        if carrier is not None and question is not None:
            _refuse_without_process(cutover_context, question, carried_by)
        time.sleep(_POLL_SECONDS)


def _refuse_without_process(cutover_context: CutoverContext, question: QuestionRow, carried_by: str) -> None:
    """End a process that asks for a step which the tasks of this run have passed: they would not answer."""
    if question.answer is not None:
        return
    situation.answer(
        cutover_context.ledger,
        question.cutover,
        Step(question.step),
        yes=False,
        by="Airflow",
        note="no task of this run asks for it",
    )
    raise AirflowFailException(
        f"cutover {question.cutover} asks for step {question.step} again, which this run has already passed. "
        f"{_again(_progress(cutover_context), carried_by)}"
    )


def _already(step: str) -> str:
    return f"step {step} was already confirmed"


def _had_been_answered(done: Progress, step: str, given: Answer | None) -> str:
    attempt = last_attempts(done.attempts).get(Step(step))
    if given is None:
        raise AirflowFailException(f"the cutover no longer asks for step {step}, and this run has no answer.")
    if given.agrees:
        return _already(step)
    by = "unknown" if attempt is None else attempt.by
    raise AirflowFailException(f"step {step} was already confirmed by {by}: roll the cutover back.")


def _pass_on(
    cutover_context: CutoverContext, question: QuestionRow, received: Answer | None, asked_by: str, *, is_other: bool
) -> str:
    ledger, name, step = cutover_context.ledger, question.cutover, Step(question.step)
    if received is None:
        situation.answer(ledger, name, step, yes=False, by="Airflow", note=f"the task {asked_by} failed")
        raise AirflowFailException(
            f"task {asked_by} got no answer, or Airflow ended it before the answer was passed on, for example because "
            f"the scheduler was slow. Trigger this DAG again with the name {name}."
        )
    if is_other and received.agrees and step is Step.APPROVE:
        situation.answer(ledger, name, step, yes=False, by=received.by, note="the answer was for an earlier attempt")
        raise AirflowFailException(
            f"{received.by} approved the gates of an earlier attempt. Trigger this DAG again with the name {name}."
        )
    given = situation.answer(ledger, name, step, yes=received.agrees, by=received.by)
    if not received.agrees:
        raise AirflowFailException(f"{received.by} rejected step {step}: the cutover stopped. It can be rolled back.")
    situation.await_taken(ledger, given)
    return f"step {step} confirmed by {received.by}"


def _is_carried(context: Mapping[str, Any], carried_by: str) -> bool:
    """Return True if the task that carries the cutover out may still do so."""
    state = task_state(context, carried_by)
    return state is None or state not in ENDED_STATES


def _carrier(done: Progress, context: Mapping[str, Any]) -> CarrierRow | None:
    """Return the process that carries the cutover out, if this DAG run has started it."""
    carrier = done.present.carrier
    return carrier if carrier is not None and carrier.kind == "run" and carrier.by == _person(context) else None


def _has_finished(done: Progress) -> bool:
    """Return True if the cutover has ended.

    Raises:
        AirflowFailException: it was rolled back.
    """
    if done.state is CutoverState.ROLLED_BACK:
        raise AirflowFailException(sentence(done))
    return done.state is CutoverState.FINISHED


def _is_past(done: Progress, carrier: CarrierRow | None, step: str) -> bool:
    """Return True if the process is past a step; unknown until it has checked the clusters again."""
    if carrier is None or carrier.step is None:
        return False
    return comes_before(done.definition.style, Step(step), Step(carrier.step))


def _again(done: Progress, carried_by: str) -> str:
    return f"Trigger this DAG again with the name {done.definition.name}: clearing {carried_by} asks no question."


def report(flow: str, config_path: str, name: str, **context: Any) -> dict[str, Any]:
    """Print the timeline; fail unless the cutover has finished."""
    with _cutover_context(flow, config_path, name, _person(context)) as cutover_context:
        done = _progress(cutover_context)
    _log.info("%s", Lines(progress_text(done)))
    if done.state is not CutoverState.FINISHED:
        raise AirflowFailException(sentence(done))
    return {key: value for key, value in as_data(done).items() if key != "attempts"}


def _progress(cutover_context: CutoverContext) -> Progress:
    return progress(cutover_context.ledger, cutover_context.definition)


def _stop_at_failure(done: Progress) -> None:
    if done.state is CutoverState.FAILED:
        raise AirflowFailException(progress_text(done))


@contextmanager
def _cutover_context(flow: str, config_path: str, name: str, by: str) -> Iterator[CutoverContext]:
    """Open a cutover of the flow: the name comes from the form or from XCom, which users of this DAG may write, and who
    may use the DAGs of other flows is for Airflow to decide.
    """
    # The writers may be stopped: an answer must not be lost because the file is being edited.
    config = load_patiently(Path(config_path))
    with open_ledger(config) as ledger:
        definition = open_cutover(ledger, name, flow=flow)
        yield CutoverContext(definition=definition, config=config, ledger=ledger, by=by, last=attempts_of(ledger, name))


def _person(context: Mapping[str, Any]) -> str:
    run = context["dag_run"]
    return trigger_text(run.dag_id, run.run_id)
