"""Whatever is asked of any route: an answer or a refusal, never a crash, and never more than somebody may know.

How often one visitor may ask: a minute's worth at once, then evenly, each visitor and each route for itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.config.loader import load
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.page.errors import TooManyRequestsError
from mirror_lib.features.page.limits import DEFAULTS, Kind, RateLimits, parse_limits
from mirror_lib.features.page.queries import PageQueries
from mirror_lib.features.page.security import LARGEST_BODY, SAFE_HEADERS
from mirror_lib.ledger.location import open_ledger
from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.page.app import ACTION, Airflow, Person, page_app
from tests.support.page.client import Client
from tests.support.page.routes import DAG, GAP, ORDERS, Route, routes_of

ROUTES = routes_of(page_app(None, Airflow()))
READING = [route for route in ROUTES if route.method == "GET"]
ACTING = [route for route in ROUTES if route.method == "POST"]
OF_A_FLOW = [route for route in ROUTES if "dag_id" in route.in_path]
NO_LIMITS = "actions=0,lists=0,metrics=0"

#: What has broken programs before: SQL, patterns of LIKE, paths, templates, ends of lines, halves of characters.
HOSTILE = [
    *("", "'", '"', "';--", "' OR '1'='1", "'; DROP TABLE audit; --", "1 UNION SELECT password FROM users"),
    *("%", "_", "\\", "%%%_\\_%", "*", "\x00", "a\x00b"),
    *("..", "../../etc/passwd", "..\\..\\windows", "%2e%2e%2f", "/", "//elsewhere.example", "a/b", "."),
    *("\r\nSet-Cookie: a=b", "\n", "<script>alert(1)</script>", "{{7*7}}", "${jndi:ldap://elsewhere.example}"),
    *("\u202egnp.exe", "\ufeff", "é" * 200, "x" * 5000, "\U0010ffff", "\ud800"),
    *("K", "\u212a"),  # The sign for Kelvin becomes a k when it is made small.
    *("NaN", "Infinity", "-1", "0", "1e400", "9" * 400, "true", "null"),
    *("behind", "tight", DAG, "__class__", "__proto__"),
]
TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60), st.integers().map(str), st.floats().map(str))
JSON = st.recursive(
    st.one_of(TEXT, st.integers(), st.floats(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def hostile_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = write_config(tmp_path_factory.mktemp("hostile"), STORIES[:4])
    seed(config, STORIES[:4], observations=3)
    return config


@pytest.fixture(scope="module")
def anybody(hostile_config: Path) -> Client:
    """A page that very many requests may change."""
    return Client(page_app(hostile_config, Airflow(), MIRROR_PAGE_LIMITS=NO_LIMITS))


@pytest.fixture(scope="module")
def outsider(hostile_config: Path) -> Client:
    """Somebody who may read one flow only."""
    airflow = Airflow(person=Person(name="otto", reads=frozenset({STORIES[1].dag_id})))
    return Client(page_app(hostile_config, airflow, MIRROR_PAGE_LIMITS=NO_LIMITS))


def ask(client: Client, route: Route, path: dict[str, str], query: dict[str, str], body: Any = None) -> httpx.Response:
    address = route.path
    for name, value in path.items():
        address = address.replace(f"{{{name}}}", quote(value, safe="", errors="surrogatepass"))
    if query:
        address += f"?{urlencode(query, errors='surrogatepass')}"
    if route.method == "GET":
        return client.get(address)
    # As a program would write it that knows no better: with numbers and halves of characters that JSON does not have.
    return client.send(address, json.dumps(body).encode(), ACTION)


def assert_safe(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    for name, value in SAFE_HEADERS.items():
        assert answer.headers[name] == value
    assert "Set-Cookie" not in answer.headers
    if answer.headers.get("Content-Type", "").startswith("application/json"):
        answer.json()
    assert "Traceback" not in answer.text
    assert "sqlite" not in answer.text.lower()


def test_every_route_that_changes_something_is_known_to_these_tests() -> None:
    assert {route.path for route in ACTING} == set(ORDERS)
    assert {field for route in ACTING for field in route.in_body} == {key for order in ORDERS.values() for key in order}


@settings(max_examples=300)
@given(route=st.sampled_from([route for route in ROUTES if route.in_path]), data=st.data())
def test_nothing_in_a_path_makes_a_route_crash(anybody: Client, route: Route, data: st.DataObject) -> None:
    values = route.path_values()
    values[data.draw(st.sampled_from(route.in_path))] = data.draw(TEXT)

    assert_safe(ask(anybody, route, values, route.query_values(), route.order()))


@settings(max_examples=400)
@given(route=st.sampled_from([route for route in ROUTES if route.in_query]), data=st.data())
def test_nothing_in_a_query_makes_a_route_crash(anybody: Client, route: Route, data: st.DataObject) -> None:
    names = st.one_of(st.sampled_from(route.in_query), TEXT)
    query = {**route.query_values(), **data.draw(st.dictionaries(names, TEXT, max_size=4))}

    answer = ask(anybody, route, route.path_values(), query)

    assert_safe(answer)
    assert answer.status_code in (200, 422)


@settings(max_examples=400)
@given(route=st.sampled_from(ACTING), data=st.data())
def test_nothing_in_a_body_makes_a_route_crash(anybody: Client, route: Route, data: st.DataObject) -> None:
    order: Any = route.order()
    if data.draw(st.booleans()):
        order[data.draw(st.one_of(st.sampled_from(route.in_body), TEXT))] = data.draw(JSON)
    else:
        order = data.draw(JSON)

    assert_safe(ask(anybody, route, route.path_values(), {}, order))


@pytest.mark.parametrize("route", ACTING, ids=str)
def test_json_that_leads_parsers_astray_is_refused(anybody: Client, route: Route) -> None:
    deep = (b"[" * 10_000, b'{"a":' * 2_000)
    for body in (*deep, b'{"note": NaN}', b"1" * 5_000, b'{"note": "\xff"}', b"\xff\xfe{"):
        answer = anybody.send(route.path.format(**route.path_values()), body, ACTION)

        assert_safe(answer)
        assert answer.status_code in (400, 422), body[:20]


@pytest.mark.parametrize("route", ACTING, ids=str)
def test_a_body_that_is_too_large_is_not_read_to_its_end(anybody: Client, route: Route) -> None:
    def pieces() -> Any:
        for _ in range(1000):
            taken.append(1)
            yield b" " * 4096

    for headers in (ACTION, {**ACTION, "Content-Length": str(4096 * 1000)}):
        taken: list[int] = []
        answer = anybody.send(route.path.format(**route.path_values()), pieces(), headers)

        assert answer.status_code == 413
        assert_safe(answer)
        assert len(taken) <= LARGEST_BODY / 4096 + 2


@settings(max_examples=150)
@given(route=st.sampled_from(OF_A_FLOW), data=st.data())
def test_a_flow_that_may_not_be_read_answers_as_one_that_is_not_there(
    outsider: Client, route: Route, data: st.DataObject
) -> None:
    query = {**route.query_values(), **data.draw(st.dictionaries(st.sampled_from(route.in_query or ("a",)), TEXT))}
    order = route.order() if data.draw(st.booleans()) else data.draw(JSON)
    forbidden = ask(outsider, route, route.path_values(DAG), query, order)
    missing = ask(outsider, route, route.path_values("mirror__nobody__here"), query, order)

    assert forbidden.status_code in (404, 422)
    assert forbidden.status_code == missing.status_code
    assert forbidden.text.replace(DAG, "ID") == missing.text.replace("mirror__nobody__here", "ID")
    assert {**forbidden.headers, "content-length": ""} == {**missing.headers, "content-length": ""}


def test_without_a_login_every_route_answers_401_and_with_one_that_opens_no_page_403(hostile_config: Path) -> None:
    airflow = Airflow()
    client = Client(page_app(hostile_config, airflow, MIRROR_PAGE_LIMITS=NO_LIMITS))

    for route in ROUTES:
        for person, status in ((None, 401), (Person(opens=False), 403)):
            airflow.person = person
            answer = ask(client, route, route.path_values(), route.query_values(), route.order())

            assert answer.status_code == status, str(route)
            assert_safe(answer)
            assert (airflow.triggered, airflow.dags) == ([], None), str(route)


def test_every_route_that_reads_answers_what_it_is_there_for(client: Client) -> None:
    """So that the refusals of the tests above are refusals of what was hostile."""
    for route in READING:
        answer = ask(client, route, route.path_values(), route.query_values())
        assert answer.status_code == 200, f"{route}: {answer.text}"


def test_other_methods_are_refused_and_what_is_not_there_is_not_there(anybody: Client) -> None:
    for route in ROUTES:
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer = anybody.request(method, route.path.format(**route.path_values()))
            assert answer.status_code == 405, f"{method} {route}"
            assert_safe(answer)

    for path in ("/nothing", "/api", "/api/flows/", "/static/", "/static/../app.py", "/%2e%2e/%2e%2e"):
        answer = anybody.get(path)
        assert answer.status_code in (307, 404), path
        assert_safe(answer)


@settings(max_examples=60)
@given(word=st.sampled_from([text for text in HOSTILE if "\x00" not in text and text]))
def test_a_search_finds_what_has_the_words_in_it_and_nothing_else(anybody: Client, word: str) -> None:
    """No character of a filter is more than itself, whatever it means in SQL."""
    address = f"/api/flows/{DAG}/partitions?size=500"
    everything = anybody.get(address).json()["rows"]
    query = urlencode({"topic": word}, errors="replace")
    answer = anybody.get(f"{address}&{query}")
    if answer.status_code == 422:
        assert len(word) > 249
        return

    wanted = [row["topic"] for row in everything if word.lower() in row["topic"].lower()]
    assert sorted(row["topic"] for row in answer.json()["rows"]) == sorted(wanted)


def test_after_all_that_the_ledger_has_its_tables_and_rows(anybody: Client, hostile_config: Path) -> None:
    for word in HOSTILE:
        anybody.get(f"/api/flows/{DAG}/partitions?{urlencode({'topic': word}, errors='surrogatepass')}")

    with open_ledger(load(hostile_config)) as ledger:
        assert len(ledger.gaps("berlin->cloud")) == 1
        assert PageQueries(ledger).partition_counts("berlin->cloud")[0]
        assert ledger.audits.newest("berlin->cloud")


def test_a_fault_of_the_page_tells_nothing_of_what_is_inside_and_has_the_headers(hostile_config: Path) -> None:
    class Broken(Airflow):
        def dag_states(self, dag_ids: Any) -> Any:
            raise RuntimeError("postgresql://airflow:secret@database/airflow")

    answer = Client(page_app(hostile_config, Broken())).get("/api/overview")

    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["detail"]["reason"] == "error"
    for name, value in SAFE_HEADERS.items():
        assert answer.headers[name] == value
    assert answer.headers["Cache-Control"] == "no-store"


FLOW = f"/api/flows/{DAG}"


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def admitted(limits: RateLimits, times: int, *, route: str = "GET /x", visitor: str = "marta") -> int:
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

    at_once = admitted(limits, 20)
    with pytest.raises(TooManyRequestsError) as refused:
        limits.take(Kind.LISTS, "GET /x", "marta")
    clock.now += 9.9
    too_early = admitted(limits, 5)
    clock.now += 0.2
    grown = admitted(limits, 5)

    # Six a minute are one in ten seconds, as the refusal says.
    assert (at_once, refused.value.retry_after_seconds, too_early, grown) == (6, 10, 0, 1)


@given(steps=st.lists(st.floats(0, 30), max_size=60))
def test_over_any_time_no_more_come_through_than_a_full_bucket_and_what_grew(steps: list[float]) -> None:
    clock = Clock()
    limits = RateLimits({"MIRROR_PAGE_LIMITS": "lists=10"}, clock)
    began, through = clock.now, 0

    for step in steps:
        clock.now += step
        through += admitted(limits, 3)

    assert through <= 10 + (clock.now - began) * 10 / 60 + 1e-6


def test_many_visitors_take_no_more_memory_than_so_many_buckets() -> None:
    limits = RateLimits({"MIRROR_PAGE_LIMITS": "lists=2"}, Clock())

    for number in range(10_500):
        limits.take(Kind.LISTS, "GET /x", f"visitor-{number}")

    assert len(limits._buckets) == 10_000


def test_limits_are_the_defaults_but_for_what_is_named_and_0_is_none() -> None:
    assert parse_limits("") == dict(DEFAULTS)
    assert parse_limits(" metrics = 0 , actions=5 ") == {**DEFAULTS, Kind.METRICS: 0, Kind.ACTIONS: 5}
    assert admitted(RateLimits({"MIRROR_PAGE_LIMITS": "lists=0"}, Clock()), 5000) == 5000

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
