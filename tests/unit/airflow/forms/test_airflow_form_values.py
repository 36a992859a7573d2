"""Nonsense in every field of every form: refused by Airflow when the run is triggered, or by the first task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import ParamValidationError

from mirror_lib.airflow.compatibility import ParamsDict
from mirror_lib.airflow.flow.form import TriggerChoices, trigger_form
from mirror_lib.airflow.forms.conf import check_conf
from mirror_lib.airflow.forms.fields import chosen_topics
from mirror_lib.airflow.forms.slow_patterns import has_catastrophic_backtracking
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.backfill.airflow.form import BackfillChoices, backfill_form
from mirror_lib.features.cutover.airflow.after_disaster.dag import after_disaster_form
from mirror_lib.features.cutover.airflow.form import cutover_form, definition_from
from mirror_lib.features.verify.airflow.form import VerifyChoices, verify_form
from tests.support.flow_configs import flow_config

_FLOW = flow_config(topics=("orders.*",))


def _define(params: Mapping[str, Any]) -> object:
    return definition_from({**params, "topics": params["topics"] or [".*"]}, "A->B", "scope")


#: DAG -> its form, and what its first task makes of the values.
FORMS: Mapping[str, tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], object]]] = {
    "flow": (trigger_form(_FLOW), TriggerChoices.from_params),
    "verify": (verify_form(_FLOW), VerifyChoices.from_params),
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
    assert repr(TriggerChoices.from_params({"tasks": 3.0, "bytes_per_second": 1e6})) == repr(
        TriggerChoices(excluded_steps=frozenset(), tasks=3, bytes_per_second=1_000_000)
    )


def test_usual_patterns_take_no_time() -> None:
    for pattern in (".*", r".*orders.*", r"([a-z]+\.)*orders", r"(\w+-)*x", r".*a.*b.*c.*d", "(?i)us|eu"):
        assert not has_catastrophic_backtracking(pattern), pattern


def test_a_list_of_slow_patterns_is_not_checked_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_lib.airflow.forms.values.PATTERN_SECONDS_A_LIST", -1.0)

    assert "topics: its values take more than -1 s to check" in str(_refusal("flow", {"topics": ["orders", "us"]}))
