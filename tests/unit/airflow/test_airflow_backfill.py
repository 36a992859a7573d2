"""The DAG for backfills: its form, what it passes to the job, and what a dry run leaves alone."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.backfill.airflow import tasks as backfill_tasks
from mirror_lib.features.backfill.airflow.form import BackfillChoices, Target, backfill_form
from mirror_lib.features.backfill.airflow.operator import BackfillOperator


def defaults(flow):
    return {name: param.value for name, param in backfill_form(flow).items()}


def command_line(make_flow, defined, **answers):
    """The job's arguments, after a task that defined this backfill."""
    operator = BackfillOperator(task_id="copy", defined_by="define", flow="A->B", config_path="/f", conn_id="spark")
    context = {
        "params": {**defaults(make_flow()), **answers},
        "dag": SimpleNamespace(dag_id="mirror_backfill__A__B"),
        "run_id": "manual 1",
        "ti": SimpleNamespace(xcom_pull=lambda task_ids: {"define": defined}[task_ids]),
    }
    return operator._command_line(context, Path("/report"))


def test_answers_become_the_jobs_arguments(make_flow):
    words = command_line(make_flow, "history", max_bytes=10, bytes_per_second=5, accept_gaps=True, tasks=2)

    assert {"--backfill=history", "--max-bytes=10", "--bytes-per-second=5", "--tasks=2", "--gaps=accept"} <= set(words)


def test_without_a_defined_backfill_nothing_is_copied(make_flow):
    """As when `define` was marked as successful by hand: the job would be one of the flow itself."""
    with pytest.raises(ConfigurationError, match="define") as refused:
        command_line(make_flow, None)

    assert "Clear the task define, or trigger the DAG mirror_backfill__A__B again" in refused.value.action


def test_the_target_is_one_of_three_kinds_by_default_not_the_flows_own_topics(make_flow):
    usual = BackfillChoices.from_params(defaults(make_flow()))
    assert (usual.target, usual.target_name, usual.dry_run) == (Target.SUFFIX, ".backfill", False)
    for target, into, suffix in ((Target.SUFFIX, None, "x"), (Target.TOPIC, "x", None), (Target.SAME, None, None)):
        choices = BackfillChoices(topics=("orders",), target=target, target_name="x")
        request = backfill_tasks._request(make_flow(), choices)
        assert (request.into, request.into_suffix) == (into, suffix), target


def test_a_name_alone_goes_on_with_what_it_stands_for_and_without_it_topics_are_needed(make_flow):
    assert backfill_tasks._request(make_flow(), BackfillChoices(name="history", target_name=".backfill")) is None
    with pytest.raises(ConfigurationError, match="needs topics"):
        backfill_tasks._request(make_flow(), BackfillChoices(target_name=".backfill"))
