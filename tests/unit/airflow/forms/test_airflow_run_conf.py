"""What a run is triggered with by REST or command line: what the form does not have is refused."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseOperator

from mirror_lib import airflow, features
from mirror_lib.airflow.compatibility import ParamsDict
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.airflow.flow.form import trigger_form
from mirror_lib.airflow.forms.conf import CheckedConf, check_conf, conf_problems
from mirror_lib.airflow.forms.fields import chosen_names
from mirror_lib.errors import ConfigurationError


def context(
    form: dict[str, Any], conf: dict[str, Any] | None, *, passed_on: bool = True, age: timedelta = timedelta()
) -> dict[str, Any]:
    """What Airflow gives to a task; like Airflow, with unknown keys among the values."""
    values = dict.fromkeys(form) | ((conf or {}) if passed_on else {})
    dag = SimpleNamespace(dag_id="mirror__A__B", params=ParamsDict(form))
    return {"dag": dag, "dag_run": SimpleNamespace(conf=conf, run_after=datetime.now(UTC) - age), "params": values}


def test_given_what_the_form_has_then_the_run_goes_on(make_flow) -> None:
    for conf in (None, {}, {"dry_run": True}, {"topics": ["orders"], "gaps": "accept"}):
        check_conf(context(trigger_form(make_flow()), conf))
    # A value that is the form's own need not be passed on.
    assert list(conf_problems({"dry_run": False}, ParamsDict({"dry_run": False}), {"dry_run": False})) == []


@pytest.mark.parametrize(
    ("conf", "what", "action"),
    [
        ({"topics": ["orders"], "dryrun": True}, "did you mean dry_run", "Nothing was done"),
        ({"topics": ["orders"], "topic": True}, "did you mean topics", "Nothing was done"),
        ({"topics": ["orders"], "Topics": True}, "did you mean topics", "Nothing was done"),
        ({"topics": ["orders"], "max_second": True}, "did you mean max_seconds", "Nothing was done"),
        ({"zzz": 1, "": 2}, r"'zzz' is unknown.*'' is unknown", ""),
    ],
)
def test_given_unknown_keys_then_the_run_is_refused_and_told_what_may_be_meant(make_flow, conf, what, action) -> None:
    with pytest.raises(ConfigurationError, match=what) as caught:
        check_conf(context(trigger_form(make_flow()), conf))

    assert action in caught.value.action


def test_given_a_dag_without_form_then_any_key_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'flow' is unknown") as caught:
        check_conf(context({}, {"flow": "A->B"}))

    assert "Fields of the form: none." in caught.value.action


def test_given_an_airflow_that_does_not_pass_conf_on_then_the_run_is_refused(make_flow) -> None:
    """`core.dag_run_conf_overrides_params` = False: a dry run would be a real one."""
    with pytest.raises(ConfigurationError, match="dag_run_conf_overrides_params"):
        check_conf(context(trigger_form(make_flow()), {"dry_run": True}, passed_on=False))


@pytest.mark.parametrize("choice", ["accept", "recopy"])
def test_given_an_old_run_that_is_cleared_then_it_decides_nothing_about_what_was_lost_since(make_flow, choice) -> None:
    form = trigger_form(make_flow())

    with pytest.raises(ConfigurationError, match=f"with gaps={choice}. That decision applied to the gaps of that time"):
        check_conf(context(form, {"gaps": choice}, age=timedelta(days=90)))

    check_conf(context(form, {"gaps": choice}, age=timedelta(hours=30)))
    check_conf(context(form, {"gaps": "ask", "topics": ["orders"]}, age=timedelta(days=90)))


def test_given_names_then_blanks_do_not_count_and_only_blanks_do_not_mean_everything() -> None:
    for given, chosen in ((None, ()), ([], ()), ([" orders ", ""], ("orders",))):
        assert chosen_names({"topics": given}, "topics") == chosen

    for given in ([""], ["  ", "\t"]):
        with pytest.raises(ConfigurationError, match="topics is set, but contains no name"):
            chosen_names({"topics": given}, "topics")


def test_given_a_misspelt_key_then_the_tasks_log_shows_the_error_outside_of_the_group_that_airflow_closes(
    make_flow, caplog
) -> None:
    caplog.set_level("INFO")
    task = build_flow_dag(make_flow(), "f").get_task("preflight")

    with pytest.raises(ConfigurationError, match="did you mean topics"):
        task.pre_execute(context(trigger_form(make_flow()), {"topic": ["orders"]}))

    assert "::endgroup::" in caplog.text


def test_every_operator_of_ours_refuses_before_it_does_anything() -> None:
    """One that has `execute` alone would do what a misspelt form did not ask for."""
    modules = [
        importlib.import_module(each.name)
        for package in (airflow, features)
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    ours = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, BaseOperator) and each.__module__.startswith("mirror_lib.")
    }
    # A question does nothing but ask, and comes after a task that has looked. The operator of the DAG file for external
    # execution lets the process that it starts compare.
    assert {each.__name__ for each in ours if each.pre_execute is not CheckedConf.pre_execute} == {
        "AskOperator",
        "MirrorOperator",
    }
    assert len(ours) > 5
