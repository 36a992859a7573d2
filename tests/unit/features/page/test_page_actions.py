"""Actions: with a permission, from our own page, and never without a note in the audit.

Every route that changes something leaves an entry in the audit: done, refused, or failed; by whom, and what.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.loader import load
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.observed_rows import AuditRow
from mirror_lib.ledger.rows import GapRow
from tests.support.ledger.seeded import STORIES, write_config
from tests.support.page.app import ACTION, Airflow, Person, page_app
from tests.support.page.client import Client
from tests.support.page.routes import DAG, GAP, Route, routes_of

FLOW = f"/api/flows/{DAG}"
ACTS: list[tuple[str, dict[str, Any]]] = [
    ("/pause", {"paused": True}),
    ("/run", {}),
    ("/verify", {"mode": "recent"}),
    (f"/gaps/{GAP}", {"decision": "stop"}),
]


def audit_of(config: Path) -> tuple[AuditRow, ...]:
    """The newest first, without the one of the seeded ledger."""
    with open_ledger(load(config)) as ledger:
        return tuple(row for row in ledger.audits.newest("berlin->cloud") if row.action != "unpause")


def gap_of(config: Path) -> GapRow:
    with open_ledger(load(config)) as ledger:
        (gap,) = ledger.gaps("berlin->cloud")
        return gap


@pytest.mark.parametrize("decision", ["accept", "recopy"])
def test_a_decision_that_needs_the_clusters_is_made_by_a_run_of_the_flow(
    acting: Client, own_config: Path, airflow: Airflow, decision: str
) -> None:
    answer = acting.act(f"{FLOW}/gaps/{GAP}", {"decision": decision, "note": "as agreed"})

    assert answer.json()["run_id"] == "manual__1"
    assert airflow.triggered == [(DAG, {"topics": ["shipments"], "gaps": decision}, "marta")]
    # The run decides; until then the gap is as open as it was.
    assert gap_of(own_config).state == "open"
    (entry,) = audit_of(own_config)
    assert (entry.action, entry.detail["note"]) == (f"gap-{decision}", "as agreed")


def test_a_stop_is_made_at_once_since_only_the_ledger_has_to_know(
    acting: Client, own_config: Path, airflow: Airflow
) -> None:
    answer = acting.act(f"{FLOW}/gaps/{GAP}", {"decision": "stop", "note": "not needed"})

    assert answer.status_code == 200, answer.text
    gap = gap_of(own_config)
    assert (gap.state, gap.decided_by, gap.note) == ("stopped", "marta", "not needed")
    assert airflow.triggered == []
    again = acting.act(f"{FLOW}/gaps/{GAP}", {"decision": "accept"})
    assert again.status_code == 409


def test_what_another_site_could_send_is_refused(client: Client, airflow: Airflow) -> None:
    for headers in (
        {"Content-Type": "application/json"},
        {"X-Replication-Action": "1", "Content-Type": "text/plain"},
        {**ACTION, "Origin": "https://elsewhere.example"},
        {**ACTION, "Origin": "null"},
        {**ACTION, "Origin": "http://[half"},
        {**ACTION, "Sec-Fetch-Site": "cross-site"},
        {**ACTION, "Sec-Fetch-Site": "same-site"},
    ):
        for path, body in ACTS:
            answer = client.act(FLOW + path, body, headers=headers)

            assert answer.status_code in (403, 415), (path, headers)
            assert (airflow.triggered, airflow.dags) == ([], None), (path, headers)


def test_airflow_may_be_reached_by_its_own_address_and_by_the_configured_one(acting: Client) -> None:
    for origin in ("http://page.example", "https://airflow.example"):
        headers = {**ACTION, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
        assert acting.act(f"{FLOW}/run", {}, headers=headers).status_code == 200, origin


def test_orders_that_make_no_sense_are_refused(acting: Client, airflow: Airflow) -> None:
    for path, body in (
        ("/pause", {}),
        ("/pause", {"paused": True, "more": 1}),
        ("/verify", {"mode": "everything"}),
        (f"/gaps/{GAP}", {"decision": "resume"}),
        (f"/gaps/{GAP}", {"decision": "stop", "note": "x" * 1001}),
        ("/run", None),
    ):
        assert acting.act(FLOW + path, body).status_code == 422, (path, body)
    of_another_flow = acting.act(f"/api/flows/mirror__berlin__frankfurt/gaps/{GAP}", {"decision": "accept"})
    assert of_another_flow.status_code == 404
    assert airflow.triggered == []


def _refuse_notes(config: Path, ending: str) -> None:
    """A ledger that takes no entry of what was not done."""
    with closing(sqlite3.connect(config.parent / "ledger.sqlite3")) as connection, connection:
        connection.execute(
            f"CREATE TRIGGER full_{ending} BEFORE INSERT ON audit WHEN NEW.action LIKE '%-{ending}' "
            "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )


def test_a_refusal_and_the_reason_of_a_failure_are_told_where_they_cannot_be_noted(
    acting: Client, own_config: Path, airflow: Airflow, caplog: pytest.LogCaptureFixture
) -> None:
    for ending in ("refused", "failed"):
        _refuse_notes(own_config, ending)

    airflow.person = Person(name="vera", changes=frozenset())
    assert acting.act(f"{FLOW}/run", {}).status_code == 403
    assert "run-now-refused" in caplog.text

    airflow.person, airflow.dags = Person(), {}
    answer = acting.act(f"{FLOW}/run", {})
    assert (answer.status_code, answer.json()["detail"]["reason"]) == (404, "dag-unknown")
    assert "run-now-failed" in caplog.text
    assert [row.action for row in audit_of(own_config)] == ["run-now"]


def test_an_act_that_cannot_be_noted_before_is_not_done(acting: Client, own_config: Path, airflow: Airflow) -> None:
    _refuse_notes(own_config, "now")

    assert acting.act(f"{FLOW}/run", {}).status_code == 503
    assert airflow.triggered == []


ACTING = [route for route in routes_of(page_app(None, Airflow())) if route.method == "POST"]
#: What the audit calls each, by its route.
ACTIONS = {
    "/api/flows/{dag_id}/pause": "pause",
    "/api/flows/{dag_id}/run": "run-now",
    "/api/flows/{dag_id}/verify": "verify",
    "/api/flows/{dag_id}/gaps/{gap_id}": "gap-accept",
}
SECRET = "postgresql://airflow:hunter2@database/airflow"


class Failing(Airflow):
    """An Airflow whose database is away, and whose errors tell how it is reached."""

    def pause(self, dag_id: str, paused: bool) -> None:
        raise RuntimeError(SECRET)

    def trigger(self, dag_id: str, conf: Mapping[str, Any], *, by: str) -> str:
        raise RuntimeError(SECRET)


def entries(config: Path) -> list[AuditRow]:
    """Those of these tests, the oldest first."""
    return list(reversed(audit_of(config)))


def ask(config: Path, airflow: Airflow, route: Route) -> int:
    address = route.path.format(**route.path_values())
    return Client(page_app(config, airflow)).act(address, route.order()).status_code


@pytest.mark.parametrize("route", ACTING, ids=str)
def test_what_is_refused_failed_or_done_has_its_entries_without_a_secret(own_config: Path, route: Route) -> None:
    action = ACTIONS[route.path]

    # Without the permission nothing happens.
    vera = Airflow(person=Person(name="zoe", changes=frozenset()))
    assert ask(own_config, vera, route) == 403
    (refused,) = entries(own_config)
    assert (refused.action, refused.detail["status"]) == (f"{action}-refused", 403)
    assert refused.detail["what"].startswith("You have no permission to ")
    assert (vera.triggered, vera.dags) == ([], None)
    assert gap_of(own_config).state == "open"

    assert ask(own_config, Failing(person=Person(name="zoe")), route) == 500
    attempt, failure = sorted(entries(own_config)[1:], key=lambda entry: entry.action)
    assert (attempt.action, failure.action) == (action, f"{action}-failed")
    assert failure.detail == {"reason": "error", "what": "RuntimeError"}
    assert "hunter2" not in f"{attempt}{failure}"

    airflow = Airflow(person=Person(name="zoe"))
    assert ask(own_config, airflow, route) == 200
    assert (airflow.dags, bool(airflow.triggered)) == (({DAG: True}, False) if action == "pause" else (None, True))
    (entry,) = entries(own_config)[3:]
    assert (entry.action, entry.flow) == (action, "berlin->cloud")
    assert entry.subject in {DAG, DAG.replace("mirror__", "mirror_verify__"), *route.path_values().values()}


def test_a_decision_about_a_gap_that_is_decided_or_not_there_is_in_the_audit(own_config: Path) -> None:
    client = Client(page_app(own_config, Airflow(person=Person(name="zoe"))))
    gap = next(route for route in ACTING if "gap_id" in route.in_path)
    address = gap.path.format(**gap.path_values())
    client.act(address, {"decision": "stop"})

    again = client.act(address, {"decision": "stop"})
    nothing = client.act(gap.path.format(dag_id=DAG, gap_id="no-such-gap"), {"decision": "stop"})

    assert (again.status_code, nothing.status_code) == (409, 404)
    refused = [entry.detail["status"] for entry in entries(own_config) if entry.action == "gap-stop-refused"]
    assert sorted(refused) == [404, 409]


def test_who_may_not_act_brings_no_ledger_into_being(tmp_path: Path) -> None:
    config = write_config(tmp_path, STORIES[:1])
    client = Client(page_app(config, Airflow(person=Person(name="zoe", changes=frozenset()))))

    answer = client.act(f"/api/flows/{STORIES[0].dag_id}/run", {})

    assert answer.status_code == 403
    assert not (tmp_path / "ledger.sqlite3").exists()
