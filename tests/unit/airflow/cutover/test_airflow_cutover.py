"""The DAG of cutovers, and how what people answer in Airflow reaches the cutover in the ledger."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mirror_lib.airflow.compatibility import DAG
from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.cutover.airflow.approval import NO, YES
from mirror_lib.features.cutover.airflow.dag import build_cutover_dag
from mirror_lib.features.cutover.airflow.form import definition_from, refuse_other_values
from mirror_lib.features.cutover.airflow.patient_load import load_patiently
from mirror_lib.features.cutover.airflow.tasks import answer, await_question, begin
from mirror_lib.features.cutover.model import CutoverDefinition, Step, StepState
from mirror_lib.features.cutover.tables.carriers import CarrierRow, Carriers, QuestionRow
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.former_names import FIELDS
from mirror_lib.ledger.location import ledger_url, open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import lock_name
from mirror_lib.past_runs.airflow_runs import trigger_text
from tests.support.ledger.cutover_rows import NOON, attempt_row, cutover_row
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.seeded import write_config

QUESTIONS = ("writers_stopped", "agreed")
WAVE = CutoverDefinition(name="wave-1", flow="berlin->frankfurt", topics=("orders",))
DAG_ID, RUN = "mirror_cutover__berlin__frankfurt", "manual-1"
DAG_RUN = SimpleNamespace(dag_id=DAG_ID, run_id=RUN)


@dataclass
class TaskInstance:
    """What a task can ask Airflow: the answer of the question before it, None where it has none, and tasks' states."""

    answered: dict[str, Any] | None = None
    #: Of carry_out, each time that somebody looks; the last one stays.
    carries: list[str | None] = field(default_factory=lambda: ["running"])
    pushed: dict[str, Any] = field(default_factory=dict)

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        if key in ("asked", "passed"):
            assert task_ids == "gates_of_freeze"
            return self.pushed.get(key)
        assert task_ids == "writers_stopped"
        return self.answered

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def get_task_states(self, dag_id: str, task_ids: list[str], run_ids: list[str]) -> dict[str, dict[str, str | None]]:
        assert (dag_id, task_ids, run_ids) == (DAG_ID, ["carry_out"], [RUN])
        state = self.carries.pop(0) if len(self.carries) > 1 else self.carries[0]
        return {RUN: {"carry_out": state}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = write_config(tmp_path)
    ready_ledger(ledger_url(load(path))).close()
    with open_ledger(load(path)) as ledger:
        Cutovers(ledger).create(cutover_row(WAVE, by="marta"))
    return path


def attempt_at_freeze(ledger: Ledger, state: StepState = StepState.WAITING, number: int = 1) -> None:
    gates = [{"name": "lag", "passed": True, "what": f"look {number}."}]
    Cutovers(ledger).save_step(attempt_row(WAVE.name, number=number, state=state.value, gates=gates, by="marta"))


@dataclass
class Process:
    """A Spark job at work: it holds the cutover's lock."""

    ledger: Ledger
    id: str

    def comes_to(self, step: Step) -> None:
        Carriers(self.ledger).move(WAVE.name, self.id, step.value)

    def asks(self, number: int = 1) -> None:
        attempt_at_freeze(self.ledger, number=number)
        self.comes_to(Step.FREEZE)
        Carriers(self.ledger).ask(
            QuestionRow(cutover=WAVE.name, step="freeze", attempt=number, carrier=self.id, asked_at=NOON)
        )

    @property
    def answered(self) -> tuple[str | None, str | None]:
        """What the first question was answered, and by whom."""
        return self.question().answer, self.question().answered_by

    def question(self, number: int = 1) -> QuestionRow:
        return Carriers(self.ledger).question(WAVE.name, "freeze", number)


@contextmanager
def at_work(config: Path, *, run: str = RUN, id: str = "job-1") -> Iterator[Process]:
    with (
        open_ledger(load(config)) as ledger,
        hold_lock(ledger, flow=lock_name(WAVE.name), run_id=id, lease_seconds=30.0) as lease,
    ):
        row = CarrierRow(
            cutover=WAVE.name, id=id, kind="run", by=trigger_text(DAG_ID, run), holder=lease.holder, since=NOON
        )
        Carriers(ledger).begin(row)
        yield Process(ledger, id)
        Carriers(ledger).end(WAVE.name, id, ended_as="failed")


def pass_on(config: Path, answered: dict[str, Any] | None, asked: TaskInstance | None = None) -> str:
    task = asked or TaskInstance()
    task.answered = answered
    of_step = ("freeze", WAVE.flow, str(config), WAVE.name, "writers_stopped", "carry_out")
    return answer(*of_step, patience_seconds=0.0, ti=task, dag_run=DAG_RUN)


def wait_to_ask(config: Path, task: TaskInstance, step: str = "freeze") -> str:
    return await_question(step, WAVE.flow, str(config), WAVE.name, "carry_out", ti=task, dag_run=DAG_RUN)


def question_of_freeze(config: Path) -> Any:
    """The operator that asks."""
    return build_cutover_dag(load(config).flow(WAVE.flow), config).get_task("writers_stopped")


def said(option: str) -> dict[str, Any]:
    return {"chosen_options": [option], "responded_by_user": {"id": "7", "name": "marta"}}


@pytest.mark.parametrize(
    ("answer", "why", "by"),
    [(said(NO), "marta rejected step freeze", "marta"), (None, "writers_stopped got no answer", "Airflow")],
    ids=["a no", "a question that failed"],
)
def test_without_a_yes_the_step_is_refused_and_the_run_fails_so_that_the_spark_job_does_not_wait_on(
    config: Path, answer: dict[str, Any] | None, why: str, by: str
) -> None:
    with at_work(config) as job:
        job.asks()

        with pytest.raises(AirflowFailException, match=why):
            pass_on(config, answer)

        assert job.answered == ("no", by)


@pytest.mark.parametrize("option", [YES, NO])
def test_an_answer_to_a_job_that_has_ended_says_to_trigger_again_and_changes_nothing(config: Path, option: str) -> None:
    with at_work(config) as job:
        job.asks()
    ended = TaskInstance(carries=["failed"])

    with pytest.raises(AirflowFailException, match=r"cutover wave-1 has no running process.*Trigger this DAG again"):
        pass_on(config, said(option), ended)

    with open_ledger(load(config)) as ledger:
        question = Carriers(ledger).question(WAVE.name, "freeze", 1)
    assert (question.answer, question.ended_as) == (None, "unanswered")
    # Nor is it asked again.
    with pytest.raises(AirflowFailException, match="clearing carry_out asks no question"):
        wait_to_ask(config, ended)


def test_a_job_of_another_run_is_not_answered_by_this_one(config: Path) -> None:
    with at_work(config, run="manual-2") as job:
        job.asks()

        with pytest.raises(AirflowFailException, match="has no running process"):
            pass_on(config, said(YES), TaskInstance(carries=["failed"]))

        assert job.question().answer is None


def test_a_cleared_job_is_waited_for_and_not_judged_by_what_the_one_before_found(config: Path) -> None:
    # Given a run whose job failed at a gate, and all tasks that failed were cleared
    with at_work(config), open_ledger(load(config)) as ledger:
        Cutovers(ledger).move(WAVE.name, state="failed", step="rehearse")
        attempt_at_freeze(ledger, StepState.FAILED)
    task = TaskInstance(carries=[None, "queued", "running"])
    told: list[str] = []
    asking = threading.Thread(target=lambda: told.append(wait_to_ask(config, task)))

    # When the new job begins, and asks
    asking.start()
    with at_work(config, id="job-2") as job:
        job.asks(number=2)
        asking.join(30)

    # Then its question is the one that people are asked
    assert "look 2." in told[0]
    assert task.pushed == {"asked": "job-2"}


def test_a_step_that_passed_before_is_asked_again_until_the_job_has_looked(config: Path) -> None:
    task = TaskInstance()
    told: list[str] = []
    with at_work(config) as job:
        attempt_at_freeze(job.ledger, StepState.PASSED)
        asking = threading.Thread(target=lambda: told.append(wait_to_ask(config, task)))
        asking.start()
        # It finds that a writer is back, and asks anew.
        job.asks(number=2)
        asking.join(30)

    assert "look 2." in told[0]


def test_what_was_confirmed_elsewhere_is_not_asked_again(config: Path) -> None:
    with at_work(config) as job:
        attempt_at_freeze(job.ledger, StepState.PASSED)
        job.comes_to(Step.DRAIN)

        task = TaskInstance()
        assert "look 1." in wait_to_ask(config, task)
        # Nobody is asked.
        question = question_of_freeze(config)
        assert question.answered_before == "{{ ti.xcom_pull(task_ids='gates_of_freeze', key='passed') or '' }}"
        question.answered_before = task.pushed["passed"]
        question.execute({})
        assert pass_on(config, None, task) == "step freeze was already confirmed"

        # Somebody had been asked before it was confirmed.
        assert pass_on(config, said(YES)) == "step freeze was already confirmed"
        with pytest.raises(AirflowFailException, match="already confirmed by marta: roll the cutover back"):
            pass_on(config, said(NO))


def test_an_answer_to_a_cutover_that_was_rolled_back_says_so(config: Path) -> None:
    with open_ledger(load(config)) as ledger:
        Cutovers(ledger).move(WAVE.name, state="rolled-back", step="inventory")

    with pytest.raises(AirflowFailException, match="was rolled back"):
        pass_on(config, said(YES), TaskInstance(carries=["failed"]))
    with pytest.raises(AirflowFailException, match="was rolled back"):
        wait_to_ask(config, TaskInstance(carries=["failed"]))


def test_a_job_that_asks_what_this_run_has_passed_is_ended(config: Path) -> None:
    # As when note_freeze was marked, or carry_out was cleared alone
    with at_work(config) as job:
        job.asks()

        with pytest.raises(AirflowFailException, match="asks for step freeze again"):
            wait_to_ask(config, TaskInstance(), step="approve")

        assert job.answered == ("no", "Airflow")


def test_a_job_that_was_cleared_without_the_tasks_that_ask_does_not_begin(config: Path) -> None:
    carry_out = build_cutover_dag(load(config).flow(WAVE.flow), config).get_task("carry_out")

    for state in ("failed", "upstream_failed", "success"):
        instance = SimpleNamespace(
            xcom_pull=lambda task_ids: {"begin": WAVE.name}[task_ids],
            get_task_states=lambda state=state, **_: {RUN: {"note_approve": state}},
        )
        with pytest.raises(AirflowFailException, match="no answer could be passed on"):
            carry_out.execute({"ti": instance, "dag_run": DAG_RUN})


@pytest.fixture
def dag(make_flow: Callable[..., FlowConfig]) -> DAG:
    return build_cutover_dag(make_flow(), "/etc/mirror.properties")


def test_the_answer_is_passed_on_even_when_asking_failed_but_not_when_a_cutover_was_only_taken_back(dag: DAG) -> None:
    for step, question in (("freeze", "writers_stopped"), ("approve", "agreed")):
        noted = dag.get_task(f"note_{step}")
        assert noted.upstream_task_ids == {question}
        assert noted.trigger_rule == "none_skipped"


def test_the_forms_own_values_make_a_cutover_if_topics_are_added(dag: DAG) -> None:
    filled_in = {**dag.params.dump(), "topics": ["orders", "pay.*"], "groups": [" billing "]}

    definition = definition_from(filled_in, "A->B", "wave-1")

    assert (definition.topics, definition.groups) == (("orders", "pay.*"), ("billing",))
    with pytest.raises(MirrorError, match="topics"):
        definition_from(dag.params.dump(), "A->B", "wave-1")


#: Another value for each field that a cutover keeps.
OTHERS: dict[str, Any] = {
    "topics": ["payments"],
    "groups": ["billing"],
    "style": "producers-first",
    "fence": "acl",
    "writers": ["User:app"],
    "scope": "full",
    "quiet_seconds": 3,
    "drain_seconds": 4,
    "watch_seconds": 0,
    "max_lag": 5,
    "max_duplicates": 6,
    "max_skipped": 7,
    "may_split": ["audit"],
    "may_reset": ["billing"],
    "require_failback": False,
    "with_withdrawn": True,
}


def test_a_value_that_an_existing_cutover_does_not_have_is_refused_and_both_are_named(dag: DAG) -> None:
    form = dag.params.dump()
    assert set(OTHERS) == {each.name for each in dataclasses.fields(CutoverDefinition)} - {"name", "flow"}

    for name, other in OTHERS.items():
        with pytest.raises(MirrorError, match=f"wave-1 exists with other values: {name} is .*not ") as refused:
            refuse_other_values({**form, name: other}, WAVE)
        assert "its name alone" in str(refused.value.action)


def test_the_name_alone_or_the_same_values_continue_an_existing_cutover(dag: DAG) -> None:
    form = dag.params.dump()
    created = definition_from({**form, **OTHERS}, WAVE.flow, WAVE.name)

    refuse_other_values(form, created)
    refuse_other_values({**form, **OTHERS}, created)
    # As a trigger by Airflow's API had them before the fields were renamed.
    former = {old: OTHERS[new] for old, new in FIELDS.items() if new in OTHERS}
    assert len(former) == 3
    present = {name: value for name, value in OTHERS.items() if name not in FIELDS.values()}
    assert definition_from({**form, **present, **former}, WAVE.flow, WAVE.name) == created


def test_a_trigger_with_other_topics_does_not_continue_an_existing_cutover(config: Path) -> None:
    form = build_cutover_dag(load(config).flow(WAVE.flow), config).params.dump()
    params = {**form, "name": WAVE.name, "topics": ["payments"]}

    with pytest.raises(MirrorError, match="topics is orders, not payments"):
        begin(WAVE.flow, str(config), params=params, dag_run=DAG_RUN)


OTHER_FLOW = "frankfurt->dublin"


def test_no_task_of_one_flows_dag_uses_or_shows_a_cutover_of_another_flow(config: Path) -> None:
    # Given a user who may use the DAG of one flow only; the name is from the form, or from XCom, which users may write
    dag = build_cutover_dag(load(config).flow(OTHER_FLOW), config)
    form = {**dag.params.dump(), "topics": ["payments"]}
    instance = SimpleNamespace(xcom_pull=lambda key="", **_: None if key else WAVE.name)
    context = {"ti": instance, "dag_run": SimpleNamespace(dag_id=dag.dag_id, run_id=RUN), "params": form}

    def begins(**filled_in: str) -> None:
        begin(OTHER_FLOW, str(config), params={**form, **filled_in}, dag_run=DAG_RUN)

    def runs(task_id: str) -> None:
        task = dag.get_task(task_id)
        # XCom as Airflow renders it.
        given = {key: WAVE.name if "xcom_pull" in value else value for key, value in task.op_kwargs.items()}
        task.python_callable(**given, **context)

    ways: dict[str, Callable[[], object]] = {
        "continue": lambda: begins(name=WAVE.name),
        "roll back": lambda: begins(name=WAVE.name, action="roll back"),
        "carry out": lambda: dag.get_task("carry_out")._command_line(context, config),
        **{each: partial(runs, each) for each in dag.task_ids if each not in ("begin", "carry_out", *QUESTIONS)},
    }
    assert len(ways) == 9
    for way, goes in ways.items():
        # Then it is refused, and neither its topics nor its flow are shown
        with pytest.raises(MirrorError, match="'wave-1' of flow frankfurt->dublin") as refused:
            goes()
        assert not {"orders", "berlin"} & set(re.split(r"\W+", str(refused.value))), way
    # And it cannot be brought back by a flow that is not its failback flow, nor is that cutover created
    with pytest.raises(MirrorError, match="'wave-1' of flow dublin->frankfurt"):
        begins(name="mine", back_of=WAVE.name)
    with open_ledger(load(config)) as ledger:
        assert [(row.name, row.state) for row in Cutovers(ledger).newest()] == [(WAVE.name, "waiting")]


def test_a_file_that_stays_broken_ends_the_waiting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_patiently(tmp_path / "gone.properties", patience_seconds=0)
