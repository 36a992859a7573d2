import logging
from types import SimpleNamespace

import jsonschema
import pytest

from mirror_lib.airflow.compatibility import AirflowSkipException
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.airflow.flow.form import OPTIONAL_STEPS, TriggerChoices, trigger_form
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.flow.step_operator import StepOperator, logging_at
from mirror_lib.airflow.forms.fields import topic_names
from mirror_lib.features.verify.airflow.form import verify_form


def run_step(task_id, function, params):
    pushed = {}
    context = {
        "params": params,
        "ti": SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value})),
        "outlet_events": {},
    }
    operator = StepOperator(task_id=task_id, python_callable=function, op_kwargs={"flow": "A->B"})
    try:
        return operator.execute(context), pushed
    except AirflowSkipException as skip:
        return skip, pushed


def test_a_selection_that_names_its_topics_becomes_a_list_to_choose_from(make_flow):
    for form in (trigger_form, verify_form):
        schema = form(make_flow(topics=("orders", r"us\.cash", "eu.cash")))["topics"].schema
        assert schema["examples"] == ["orders", "us.cash", "eu.cash"]
        # Others still come through the API.
        jsonschema.validate(["ord.*"], schema)
        # A selection with patterns is narrowed by text of one's own.
        assert "examples" not in form(make_flow(topics=("orders", "pay.*")))["topics"].schema


def test_a_pattern_is_no_name():
    for pattern in (".*", "a|b", "[ab]", "a+", "a?", "x{2}", r"\d", "(a)", "a.*"):
        assert topic_names(("orders", pattern)) == (), pattern


def test_a_scheduled_run_does_every_step_and_one_with_all_steps_taken_away_the_copy_alone(make_flow):
    defaults = {name: param.resolve() for name, param in trigger_form(make_flow()).items()}

    assert TriggerChoices.from_params(defaults) == TriggerChoices()
    for emptied in (None, []):
        assert TriggerChoices.from_params({"steps": emptied}).excluded_steps == set(OPTIONAL_STEPS)
    # Of an API call that does not speak of steps.
    assert TriggerChoices.from_params({}).excluded_steps == frozenset()


def test_every_step_that_can_be_left_out_is_a_task_of_the_dag_and_all_its_tasks_can_bear_it(make_flow):
    dag = build_flow_dag(make_flow(), "/f")

    assert set(OPTIONAL_STEPS) <= set(dag.task_ids)
    for step in OPTIONAL_STEPS:
        for task_id in dag.get_task(step).downstream_task_ids:
            assert dag.get_task(task_id).trigger_rule in ("none_failed", "all_done"), f"{task_id} after {step}"


def test_a_step_that_is_left_out_is_skipped_and_says_so_to_the_report_and_all_others_are_done():
    skip, pushed = run_step("sync_topics", lambda flow: flow, {"steps": ["heartbeats"]})
    assert isinstance(skip, AirflowSkipException)
    assert pushed[STEP_KEY]["skipped"] == "the run was triggered without this step"

    assert run_step("sync_topics", lambda flow: flow, {"steps": ["sync_topics"]})[0] == "A->B"
    # It is no step beside the copy.
    assert run_step("preflight", lambda flow: flow, {"steps": None})[0] == "A->B"


def test_the_log_level_holds_for_our_own_messages_while_the_step_runs_also_if_it_fails():
    ours = logging.getLogger("mirror_lib")
    before, outside = ours.level, logging.getLogger("other").getEffectiveLevel()

    found, _ = run_step(
        "preflight", lambda flow: (ours.level, logging.getLogger("other").getEffectiveLevel()), {"log_level": "DEBUG"}
    )
    assert found == (logging.DEBUG, outside)
    assert ours.level == before

    with pytest.raises(ZeroDivisionError), logging_at("ERROR"):
        _ = 1 / 0
    assert ours.level == before
