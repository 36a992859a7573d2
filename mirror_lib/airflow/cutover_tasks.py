"""What the Python tasks of a cutover's DAG do; copying and comparing is the work of one Spark job beside them."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.asking import PATIENCE_SECONDS, answer_to
from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.cutover_form import ROLL_BACK, definition_from
from mirror_lib.observe.airflow_runs import trigger_text
from mirror_lib.runbook.model import CutoverState, Step

if TYPE_CHECKING:
    from mirror_lib.runbook.desk import Desk
    from mirror_lib.runbook.machine import Progress

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def begin(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> str:
    """Defines the cutover, or finds the one that has begun; or takes it back, when that was chosen.

    Returns its name.
    """
    from mirror_lib.config.load import load
    from mirror_lib.ledger.location import open_ledger
    from mirror_lib.runbook.desk import Desk
    from mirror_lib.runbook.machine import create, progress
    from mirror_lib.runbook.opening import failback_of, open_cutover
    from mirror_lib.runbook.report import progress_text

    run = context["dag_run"]
    name = (params.get("name") or "").strip() or _NOT_IN_NAMES.sub("-", run.run_id)[:100].strip("-.")
    by = _person(context)
    if params.get("action") == ROLL_BACK:
        with _desk(config_path, name, by) as desk:
            _take_back(desk)
        raise AirflowSkipException(f"cutover {name} was taken back.")
    config = load(Path(config_path))
    with open_ledger(config) as ledger:
        if ledger.cutovers.find(name) is None:
            back_of = (params.get("back_of") or "").strip()
            home = failback_of(config, ledger, back_of, name) if back_of else None
            definition = home or definition_from(params, flow, name)
            create(ledger, definition, by=by, desk=Desk(definition=definition, config=config, ledger=ledger, by=by))
        present = progress(ledger, open_cutover(ledger, name))
    if present.definition.flow != flow:
        raise AirflowFailException(f"cutover {name} is one of flow {present.definition.flow}, and not of {flow}.")
    _log.info("%s", progress_text(present))
    return name


def _take_back(desk: Desk) -> None:
    from mirror_lib.runbook.rollback import roll_back

    undone = roll_back(desk)
    for gate in undone:
        _log.info("%s", gate)
    if not all(gate.passed for gate in undone):
        raise AirflowFailException("something was not taken back: " + "; ".join(map(str, undone)))


def prepare(config_path: str, name: str, **context: Any) -> str:
    """Takes the inventory and looks whether everything can move. Returns the gates for people."""
    from mirror_lib.runbook.machine import Machine
    from mirror_lib.runbook.report import gates_markdown, progress_text

    with _desk(config_path, name, _person(context)) as desk:
        done = Machine(desk).run(until=Step.PREFLIGHT)
    _log.info("%s", progress_text(done))
    _stop_at_failure(done)
    return gates_markdown(done)


def await_question(step: str, config_path: str, name: str, **context: Any) -> str:
    """Waits until the cutover asks for a person's word, or is past it. Returns the gates that were found until then."""
    from mirror_lib.runbook.model import StepState
    from mirror_lib.runbook.order import last_attempts
    from mirror_lib.runbook.report import gates_markdown

    with _desk(config_path, name, _person(context)) as desk:
        while True:
            done = _progress(desk)
            attempt = last_attempts(done.attempts).get(Step(step))
            if attempt is not None and attempt.state in (StepState.WAITING, StepState.PASSED):
                return gates_markdown(done)
            _stop_at_failure(done)
            if done.state.ended:
                return gates_markdown(done)
            time.sleep(_POLL_SECONDS)


def answer(
    step: str, config_path: str, name: str, asked_by: str, patience_seconds: float = PATIENCE_SECONDS, **context: Any
) -> str:
    """Passes on what the person has answered. Nothing to pass on where the step had been confirmed before.

    A question that failed without an answer is a no: the Spark job would wait on for one that cannot come.
    """
    from mirror_lib.runbook.machine import confirm, refuse
    from mirror_lib.runbook.model import StepState
    from mirror_lib.runbook.order import last_attempts

    with _desk(config_path, name, "Airflow") as desk:
        attempt = last_attempts(_progress(desk).attempts).get(Step(step))
        is_asked = attempt is not None and attempt.state is StepState.WAITING
        said = answer_to(context["ti"], asked_by, patience_seconds if is_asked else 0.0)
        if said is None and is_asked:
            refuse(desk.ledger, desk.definition, Step(step), by="Airflow", note=f"the task {asked_by} failed")
            raise AirflowFailException(
                f"{asked_by} was not answered, or Airflow ended it before it passed the answer on, as a scheduler that "
                f"is behind does: trigger this DAG again with the name {name}."
            )
        if said is None:
            raise AirflowFailException(f"the cutover has not come to {step}: an earlier task tells why.")
        if attempt is not None and attempt.state is StepState.PASSED:
            if said.agrees:
                return f"{step} had been confirmed before"
            raise AirflowFailException(f"{step} had been confirmed before by {attempt.by}: roll the cutover back.")
        if said.agrees:
            confirm(desk.ledger, desk.definition, Step(step), by=said.by)
            return f"{step} is confirmed by {said.by}"
        refuse(desk.ledger, desk.definition, Step(step), by=said.by)
    raise AirflowFailException(f"{said.by} did not agree to {step}: the cutover stands still, and can be rolled back.")


def report(config_path: str, name: str, **context: Any) -> dict[str, Any]:
    """Prints the time line; fails the run when the cutover did not come to its end."""
    from mirror_lib.runbook.job import as_data
    from mirror_lib.runbook.report import progress_text, sentence

    with _desk(config_path, name, _person(context)) as desk:
        done = _progress(desk)
    _log.info("%s", progress_text(done))
    if done.state is not CutoverState.FINISHED:
        raise AirflowFailException(sentence(done))
    return {key: value for key, value in as_data(done).items() if key != "attempts"}


def _progress(desk: Desk) -> Progress:
    from mirror_lib.runbook.machine import progress

    return progress(desk.ledger, desk.definition)


def _stop_at_failure(done: Progress) -> None:
    from mirror_lib.runbook.report import progress_text

    if done.state is CutoverState.FAILED:
        raise AirflowFailException(progress_text(done))


@contextmanager
def _desk(config_path: str, name: str, by: str) -> Iterator[Desk]:
    from mirror_lib.config.load import load
    from mirror_lib.ledger.location import open_ledger
    from mirror_lib.runbook.desk import Desk
    from mirror_lib.runbook.opening import open_cutover
    from mirror_lib.runbook.records import attempts_of

    config = load(Path(config_path))
    with open_ledger(config) as ledger:
        definition = open_cutover(ledger, name)
        yield Desk(definition=definition, config=config, ledger=ledger, by=by, last=attempts_of(ledger, name))


def _person(context: Mapping[str, Any]) -> str:
    run = context["dag_run"]
    return trigger_text(run.dag_id, run.run_id)
