"""How often one visitor may ask: a minute's worth at once, then evenly, each visitor and each route for itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.page.errors import TooManyRequestsError
from mirror_lib.features.page.limits import DEFAULTS, Kind, RateLimits, parse_limits
from tests.support.page.app import Airflow, Person, page_app
from tests.support.page.client import Client
from tests.support.page.routes import DAG, GAP, ORDERS

FLOW = f"/api/flows/{DAG}"


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def taken(limits: RateLimits, times: int, *, route: str = "GET /x", visitor: str = "marta") -> int:
    """How many of so many requests are let through."""
    let_through = 0
    for _ in range(times):
        try:
            limits.take(Kind.LISTS, route, visitor)
        except TooManyRequestsError:
            continue
        let_through += 1
    return let_through


def test_a_minutes_worth_may_come_at_once_and_then_one_each_time_a_token_has_grown() -> None:
    clock = Clock()
    limits = RateLimits({"MIRROR_PAGE_LIMITS": "lists=6"}, clock)

    at_once = taken(limits, 20)
    with pytest.raises(TooManyRequestsError) as refused:
        limits.take(Kind.LISTS, "GET /x", "marta")
    clock.now += 9.9
    too_early = taken(limits, 5)
    clock.now += 0.2
    grown = taken(limits, 5)

    # Six a minute are one in ten seconds, as the refusal says.
    assert (at_once, refused.value.retry_after_seconds, too_early, grown) == (6, 10, 0, 1)


@given(steps=st.lists(st.floats(0, 30), max_size=60))
def test_over_any_time_no_more_come_through_than_a_full_bucket_and_what_grew(steps: list[float]) -> None:
    clock = Clock()
    limits = RateLimits({"MIRROR_PAGE_LIMITS": "lists=10"}, clock)
    began, through = clock.now, 0

    for step in steps:
        clock.now += step
        through += taken(limits, 3)

    assert through <= 10 + (clock.now - began) * 10 / 60 + 1e-6


def test_many_visitors_take_no_more_memory_than_so_many_buckets() -> None:
    limits = RateLimits({"MIRROR_PAGE_LIMITS": "lists=2"}, Clock())

    for number in range(10_500):
        limits.take(Kind.LISTS, "GET /x", f"visitor-{number}")

    assert len(limits._buckets) == 10_000


def test_limits_are_the_defaults_but_for_what_is_named_and_0_is_none() -> None:
    assert parse_limits("") == dict(DEFAULTS)
    assert parse_limits(" metrics = 0 , actions=5 ") == {**DEFAULTS, Kind.METRICS: 0, Kind.ACTIONS: 5}
    assert taken(RateLimits({"MIRROR_PAGE_LIMITS": "lists=0"}, Clock()), 5000) == 5000

    for text in ("actions", "actions=", "actions=-1", "pages=3", "lists=1e3", "lists=²", "lists=9" * 9):
        with pytest.raises(ConfigurationError, match="MIRROR_PAGE_LIMITS"):
            parse_limits(text)


@pytest.mark.parametrize("path", ORDERS)
def test_actions_are_limited(own_config: Path, airflow: Airflow, path: str) -> None:
    client = Client(page_app(own_config, airflow, MIRROR_PAGE_LIMITS="actions=2"))

    answers = [client.act(path.format(dag_id=DAG, gap_id=GAP), ORDERS[path]) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 30
    assert answers[2].json()["detail"]["what"] == "Too many requests."
    assert answers[2].json()["detail"]["action"].startswith("Try again in ")


def test_what_reads_much_is_limited_for_each_visitor(own_config: Path, airflow: Airflow) -> None:
    client = Client(page_app(own_config, airflow, MIRROR_PAGE_LIMITS="lists=2,metrics=2"))
    lists = ("history", "partitions", "partitions/strip", "groups", "groups/partitions?group=billing")

    for path in ("/api/overview", *(f"{FLOW}/{each}" for each in lists), "/metrics"):
        airflow.person = Person(name="marta")
        assert [client.get(path).status_code for _ in range(3)] == [200, 200, 429], path
        airflow.person = Person(name="otto")
        assert client.get(path).status_code == 200, path


def test_who_is_logged_in_cannot_use_up_what_the_token_of_the_metrics_has(
    own_config: Path, tmp_path: Path, airflow: Airflow
) -> None:
    (tmp_path / "token").write_text("a-long-secret")
    settings = {"MIRROR_METRICS_TOKEN_FILE": str(tmp_path / "token"), "MIRROR_PAGE_LIMITS": "metrics=1"}
    client = Client(page_app(own_config, airflow, **settings))
    by_login = [client.get("/metrics").status_code for _ in range(2)]

    by_token = [client.get("/metrics", headers={"Authorization": "Bearer a-long-secret"}).status_code for _ in range(2)]

    assert (by_login, by_token) == ([200, 429], [200, 429])


def test_a_forged_request_uses_up_nothing_of_its_victim(own_config: Path, airflow: Airflow) -> None:
    client = Client(page_app(own_config, airflow, MIRROR_PAGE_LIMITS="actions=1"))

    for _ in range(5):
        client.act(f"{FLOW}/run", {}, headers={"Content-Type": "application/json"})

    assert client.act(f"{FLOW}/run", {}).status_code == 200


def test_limits_that_cannot_be_understood_are_told_to_whoever_meets_them(own_config: Path, airflow: Airflow) -> None:
    client = Client(page_app(own_config, airflow, MIRROR_PAGE_LIMITS="lists=many"))

    answer = client.get("/api/overview")

    assert (answer.status_code, client.get(f"{FLOW}/runs").status_code) == (503, 200)
    assert "MIRROR_PAGE_LIMITS" in answer.json()["detail"]["what"]
