"""The DAG of cutovers, and how what people answer in Airflow reaches the cutover in the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mirror_lib.airflow.asking import NO, YES
from mirror_lib.airflow.cutover_dag import build_cutover_dag
from mirror_lib.airflow.cutover_form import definition_from
from mirror_lib.airflow.cutover_tasks import answer
from mirror_lib.config.load import load
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.cutover_rows import CutoverRow, CutoverStepRow
from mirror_lib.ledger.location import open_ledger
from mirror_lib.runbook.model import CutoverDefinition, Step, StepState
from mirror_lib.runbook.records import attempts_of
from tests.support.seeded_ledger import write_config

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAVE = CutoverDefinition(name="wave-1", flow="berlin->frankfurt", topics=("orders",))


@dataclass
class TaskInstance:
    """What a task can ask Airflow: the answer of the question before it, None where it has none."""

    answered: dict[str, Any] | None

    def xcom_pull(self, task_ids: str) -> dict[str, Any] | None:
        assert task_ids == "writers_stopped"
        return self.answered


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def waiting_at_freeze(config: Path, state: StepState = StepState.WAITING) -> None:
    with open_ledger(load(config)) as ledger:
        ledger.cutovers.create(
            CutoverRow(
                name=WAVE.name,
                flow=WAVE.flow,
                state="waiting",
                step="freeze",
                definition=WAVE.to_dict(),
                created_at=NOON,
                created_by="marta",
                updated_at=NOON,
            )
        )
        ledger.cutovers.save_step(
            CutoverStepRow(
                cutover=WAVE.name,
                step="freeze",
                attempt=1,
                state=state.value,
                gates=[],
                facts={},
                by="marta",
                started_at=NOON,
            )
        )


def pass_on(config: Path, answered: dict[str, Any] | None) -> str:
    return answer("freeze", str(config), WAVE.name, "writers_stopped", patience_seconds=0.0, ti=TaskInstance(answered))


def facts_of_freeze(config: Path) -> dict[str, Any]:
    with open_ledger(load(config)) as ledger:
        return dict(attempts_of(ledger, WAVE.name)[Step.FREEZE].facts)


def said(option: str) -> dict[str, Any]:
    return {"chosen_options": [option], "responded_by_user": {"id": "7", "name": "marta"}}


def test_a_yes_confirms_the_step_in_the_name_of_who_said_it(config: Path) -> None:
    waiting_at_freeze(config)

    told = pass_on(config, said(YES))

    assert told == "freeze is confirmed by marta"
    assert facts_of_freeze(config)["confirmed_by"] == "marta"


def test_a_no_refuses_the_step_and_fails_the_run(config: Path) -> None:
    waiting_at_freeze(config)

    with pytest.raises(AirflowFailException, match="marta did not agree to freeze"):
        pass_on(config, said(NO))

    assert facts_of_freeze(config)["refused_by"] == "marta"


def test_a_question_that_failed_refuses_the_step_so_that_the_spark_job_does_not_wait_on(config: Path) -> None:
    waiting_at_freeze(config)

    with pytest.raises(AirflowFailException, match="writers_stopped was not answered"):
        pass_on(config, None)

    assert facts_of_freeze(config)["refused_by"] == "Airflow"


def test_where_nothing_was_asked_there_is_nothing_to_refuse(config: Path) -> None:
    waiting_at_freeze(config, StepState.FAILED)

    with pytest.raises(AirflowFailException, match="has not come to freeze"):
        pass_on(config, None)

    assert "refused_by" not in facts_of_freeze(config)


def test_what_was_confirmed_elsewhere_is_not_asked_again(config: Path) -> None:
    waiting_at_freeze(config, StepState.PASSED)

    assert pass_on(config, said(YES)) == "freeze had been confirmed before"
    with pytest.raises(AirflowFailException, match="confirmed before by marta: roll the cutover back"):
        pass_on(config, said(NO))


def test_the_answer_is_passed_on_even_when_asking_failed_but_not_when_a_cutover_was_only_taken_back(
    make_flow: Callable[..., FlowConfig],
) -> None:
    dag = build_cutover_dag(make_flow(), "/etc/mirror.properties")

    for step, question in (("freeze", "writers_stopped"), ("approve", "agreed")):
        noted = dag.get_task(f"note_{step}")
        assert noted.upstream_task_ids == {question}
        assert noted.trigger_rule == "none_skipped"


def test_the_forms_own_values_make_a_cutover(
    make_flow: Callable[..., FlowConfig],
) -> None:
    dag = build_cutover_dag(make_flow(), "/etc/mirror.properties")
    filled_in = {**dag.params.dump(), "topics": ["orders", "pay.*"], "groups": [" billing "]}

    definition = definition_from(filled_in, "A->B", "wave-1")

    assert (definition.topics, definition.groups) == (("orders", "pay.*"), ("billing",))


def test_a_form_without_topics_is_no_cutover(
    make_flow: Callable[..., FlowConfig],
) -> None:
    filled_in = build_cutover_dag(make_flow(), "/etc/mirror.properties").params.dump()

    with pytest.raises(MirrorError, match="topics"):
        definition_from(filled_in, "A->B", "wave-1")
