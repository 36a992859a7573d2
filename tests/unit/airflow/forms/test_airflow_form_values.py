"""Nonsense in every field of every form: refused by Airflow when the run is triggered, or by the first task.

What a run is triggered with by REST or command line: what the form does not have is refused."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import ParamValidationError

from mirror_lib import airflow, features
from mirror_lib.airflow.compatibility import AirflowSkipException, ParamsDict
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.airflow.flow.form import OPTIONAL_STEPS, excluded_steps, is_usual, job_arguments, trigger_form
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.flow.step_operator import StepOperator, logging_at
from mirror_lib.airflow.forms.conf import CheckedConf, check_conf, conf_problems
from mirror_lib.airflow.forms.fields import chosen_names, chosen_topics, chosen_values, topic_names
from mirror_lib.airflow.forms.slow_patterns import has_catastrophic_backtracking
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.backfill.airflow.form import BackfillChoices, backfill_form
from mirror_lib.features.cutover.airflow.after_disaster.dag import after_disaster_form
from mirror_lib.features.cutover.airflow.form import cutover_form, definition_from
from mirror_lib.features.cutover.model import CutoverDefinition
from mirror_lib.features.verify.airflow.form import verify_form
from mirror_lib.features.verify.job_arguments import VerifyArguments
from tests.support.flow_configs import flow_config

_FLOW = flow_config(topics=("orders.*",))


def _define(params: Mapping[str, Any]) -> object:
    return definition_from({**params, "topics": params["topics"] or [".*"]}, "A->B", "scope")


#: DAG -> its form, and what its first task makes of the values.
FORMS: Mapping[str, tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], object]]] = {
    "flow": (trigger_form(_FLOW), partial(job_arguments, "A->B", "/f")),
    "verify": (verify_form(_FLOW), partial(chosen_values, VerifyArguments)),
    "backfill": (backfill_form(_FLOW), BackfillChoices.from_params),
    "cutover": (cutover_form(_FLOW), _define),
    "after disaster": (after_disaster_form(_FLOW), chosen_topics),
}

_LONG = "x" * 1_000_000
_NO_TEXT: tuple[Any, ...] = (5, 1.5, [], {}, True, _LONG, "a\x1b[2J", "a\0b", "\ud800")
_NO_NUMBER: tuple[Any, ...] = (
    *("3", "", " ", [], {}, True),
    *(1e300, -1e300, 10**40, -(10**40), float("nan"), float("inf"), float("-inf")),
)
_NO_LIST: tuple[Any, ...] = ("orders", "", 5, {}, {"orders": True}, False)
NONSENSE: Mapping[str, tuple[Any, ...]] = {
    "boolean": (None, "true", "", 0, 1, [], {}),
    "integer": (*_NO_NUMBER, 1.5),
    "number": _NO_NUMBER,
    "string": _NO_TEXT,
    "choice": (*_NO_TEXT, "", " ", "nonsense"),
    "names": (*_NO_LIST, *([each] for each in _NO_TEXT), [None], [""], [" ", "\t"], ["orders"] * 20_000),
}
#: The last one matches for ever.
NO_PATTERNS = ("(", "[a", "a{2", "*", "(?<x>a", r"\p{Nonsense}", r"([.]|[.][.])+Z")
NO_NAMES = ("a b", "../a", "a/b", "ä", "a" * 300)
NO_BOUNDS = ("yesterday", "offset -1", "offset 1e3", "offset 99999999999999999999", "2026-02-30", "1969-01-01", "NaN")
BY_FIELD: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("topics", "groups", "may_split"), tuple([each] for each in NO_PATTERNS)),
    **dict.fromkeys(("name", "back_of", "target_name"), NO_NAMES),
    **dict.fromkeys(("from", "to"), NO_BOUNDS),
    "writers": (["app"], ["User:"], [":app"]),
    "steps": (["replicate"], ["nonsense"]),
    **dict.fromkeys(("tasks", "max_bytes", "bytes_per_second"), (0, -1)),
    **dict.fromkeys(("max_seconds", "poll_seconds", "wait_hours", "max_lag", "max_duplicates", "quiet_seconds"), (-1,)),
}


def _kind(schema: Mapping[str, Any]) -> str:
    (kind,) = {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"]) - {"null"}
    return "names" if kind == "array" else "choice" if "enum" in schema else kind


def _cases() -> Iterator[tuple[str, str, Any]]:
    for dag, (form, _) in FORMS.items():
        for field, param in form.items():
            for value in (*NONSENSE[_kind(param.schema)], *BY_FIELD.get(field, ())):
                if value is not None or "null" not in param.schema["type"]:
                    yield dag, field, value
    # A copy may end as soon as it has begun; a comparison in no time compares nothing.
    yield "verify", "max_seconds", 0


class _Refused(Exception):
    """Airflow answers 400."""


def _trigger(dag: str, conf: Mapping[str, Any]) -> None:
    """What becomes of a run's values, by Airflow and by the first task."""
    form, read = FORMS[dag]
    for name, value in conf.items():
        try:
            copy(form[name]).resolve(value)
        except ParamValidationError as error:
            raise _Refused(name) from error
    values = {name: param.value for name, param in form.items()} | dict(conf)
    dag_of_run = SimpleNamespace(dag_id=dag, params=ParamsDict({name: copy(each) for name, each in form.items()}))
    check_conf(
        {"dag": dag_of_run, "dag_run": SimpleNamespace(conf=conf, run_after=datetime.now(UTC)), "params": values}
    )
    read(values)


def test_nonsense_is_refused_by_the_name_of_its_field() -> None:
    cases = list(_cases())
    assert len(cases) > 700
    for dag, field, value in cases:
        row = f"{dag}: {field} = {value!r:.80}"
        refusal = _refusal(dag, {field: value})

        assert field in str(refusal), row
        # A refusal that repeats a megabyte is not read.
        assert len(str(refusal)) < 2_000, row
        assert isinstance(refusal, _Refused) or _is_left_to_the_first_task(dag, field, value), row


def _refusal(dag: str, conf: Mapping[str, Any]) -> ConfigurationError | _Refused | None:
    try:
        _trigger(dag, conf)
    except (ConfigurationError, _Refused) as refusal:
        return refusal
    return None


def _is_left_to_the_first_task(dag: str, field: str, value: Any) -> bool:
    """True of texts where the schema has no list of choices, and of what no JSON of a REST call contains."""
    schema = FORMS[dag][0][field].schema
    texts = value if isinstance(value, list) else [value]
    is_free = _kind(schema) in ("names", "string") and "enum" not in schema.get("items", {})
    return value != value or (is_free and all(isinstance(text, str) for text in texts))


def test_what_means_something_is_taken() -> None:
    for dag, conf in (
        ("flow", {"topics": ["orders", r"us\.(cash|.*-x)", " "], "tasks": 3.0, "max_seconds": 0, "poll_seconds": 1.5}),
        ("flow", {"steps": [], "gaps": "accept", "dry_run": True, "bytes_per_second": 1, "log_level": "DEBUG"}),
        ("flow", {"topics": [], "tasks": 64, "max_seconds": 2.5, "poll_seconds": 0, "gaps": "recopy"}),
        ("flow", {"topics": None, "tasks": None, "max_seconds": None, "poll_seconds": None, "gaps": "ask"}),
        ("flow", {"steps": None, "bytes_per_second": 10**9, "log_level": "ERROR", "dry_run": False}),
        ("flow", {"steps": ["sync_topics"], "tasks": 1, "bytes_per_second": None}),
        ("verify", {"seed": -7, "max_bytes": 2**53 - 1, "max_seconds": 0.5, "mode": "full", "topics": None}),
        ("verify", {"topics": ["a", "b.*"], "mode": "sample", "max_bytes": 1, "seed": 7}),
        ("backfill", {"from": " offset 7", "to": "2026-01-31T00:00:00Z", "name": "", "target_name": "_old-1"}),
        ("backfill", {"from": "cutover", "to": "LATEST", "name": " spring ", "max_bytes": None}),
        ("cutover", {"groups": ["app-[0-9]+", ""], "writers": ["User:app", "User:CN=a, O=b", ""], "fence": "acl"}),
        ("cutover", {"name": "wave-1", "wait_hours": 0.5, "max_lag": 0, "may_split": [r"(?i)tx-.*"], "back_of": ""}),
        ("after disaster", {"note": "fire in the cellar\n\tsee ticket 7 \U0001f525", "topics": ["[a-z]+"]}),
    ):
        assert _refusal(dag, conf) is None, (dag, conf)


def test_whole_numbers_that_are_written_with_a_point_are_whole_numbers() -> None:
    assert repr(job_arguments("A->B", "/f", {"tasks": 3.0})) == repr(JobArguments(Path("/f"), "A->B", tasks=3))


def test_a_field_is_named_as_the_value_that_it_sets() -> None:
    for dag, taken, read_alone in (
        ("flow", JobArguments, {"steps", "log_level"}),
        ("verify", VerifyArguments, {"log_level"}),
        ("backfill", BackfillChoices, {"from", "to", "log_level"}),
        ("cutover", CutoverDefinition, {"action", "back_of", "wait_hours"}),
    ):
        assert set(FORMS[dag][0]) - {field.name for field in fields(taken)} == read_alone, dag


def test_usual_patterns_take_no_time() -> None:
    for pattern in (".*", r".*orders.*", r"([a-z]+\.)*orders", r"(\w+-)*x", r".*a.*b.*c.*d", "(?i)us|eu"):
        assert not has_catastrophic_backtracking(pattern), pattern


def test_a_list_of_slow_patterns_is_not_checked_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_lib.airflow.forms.values.PATTERN_SECONDS_A_LIST", -1.0)

    assert "topics: its values take more than -1 s to check" in str(_refusal("flow", {"topics": ["orders", "us"]}))


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
        ({"topics": ["orders"], "Topics": True}, "did you mean topics", "Nothing was done"),
        ({"topics": ["orders"], "max_second": True}, "did you mean max_seconds", "Nothing was done"),
        ({"zzz": 1, "": 2}, r"'zzz' is unknown.*'' is unknown", ""),
    ],
)
def test_given_unknown_keys_then_the_run_is_refused_and_told_what_may_be_meant(make_flow, conf, what, action) -> None:
    with pytest.raises(ConfigurationError, match=what) as caught:
        check_conf(context(trigger_form(make_flow()), conf))

    assert action in caught.value.action


def test_given_a_dag_without_form_or_an_airflow_that_does_not_pass_conf_on_then_the_run_is_refused(make_flow) -> None:
    """`core.dag_run_conf_overrides_params` = False: a dry run would be a real one."""
    with pytest.raises(ConfigurationError, match=r"'flow' is unknown\..* Fields of the form: none\."):
        check_conf(context({}, {"flow": "A->B"}))
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
    # execution lets the process that it starts compare. An audit only reads, in DAGs whose form is not ours.
    unchecked = {each.__name__ for each in ours if each.pre_execute is not CheckedConf.pre_execute}
    assert unchecked == {"AskOperator", "AuditOperator", "MirrorOperator"}
    assert len(ours) > 5


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
    for pattern in (".*", "a|b", "[ab]", "a+", "a?", "x{2}", r"\d", "(a)", "a.*"):
        assert topic_names(("orders", pattern)) == (), pattern


def test_a_scheduled_run_does_every_step_and_one_with_all_steps_taken_away_the_copy_alone(make_flow):
    defaults = {name: param.resolve() for name, param in trigger_form(make_flow()).items()}

    assert job_arguments("A->B", "/f", defaults) == JobArguments(Path("/f"), "A->B")
    assert is_usual({**defaults, "log_level": "DEBUG"})
    for emptied in (None, []):
        assert excluded_steps({"steps": emptied}) == set(OPTIONAL_STEPS)
        assert not is_usual({"steps": emptied})
    # Of an API call that does not speak of steps.
    assert excluded_steps({}) == frozenset()


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
