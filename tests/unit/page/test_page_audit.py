"""Every route that changes something leaves an entry in the audit: done, refused, or failed; by whom, and what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.loader import load
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.observed_rows import AuditRow
from tests.support.ledger.seeded import STORIES, write_config
from tests.support.page.app import Airflow, Person, page_app
from tests.support.page.client import Client
from tests.support.page.routes import DAG, Route, routes_of

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
    """Those of these tests, the oldest first; the seeded ledger has others."""
    with open_ledger(load(config)) as ledger:
        return [row for row in reversed(ledger.audits.newest("berlin->cloud")) if row.by == "zoe"]


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
    with open_ledger(load(own_config)) as ledger:
        assert [gap.state for gap in ledger.gaps("berlin->cloud")] == ["open"]

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
