"""The page inside a real Airflow: who may see it, who may act, and that Airflow does what it is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from mirror_lib.dev.airflow import airflow_settings
from mirror_lib.dev.ports import free_ports
from mirror_lib.dev.processes import start, tail
from tests.support.airflow.home import migrate
from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.page.app import ACTION, Airflow, page_app
from tests.support.page.browser import chromium
from tests.support.page.routes import Route, routes_of

_PROJECT = Path(__file__).resolve().parents[2]
_START_SECONDS = 240.0
_PASSWORDS = {"vera": "look-only", "otto": "may-act", "olga": "may-operate", "ada": "may-all", "dora": "may-some"}
#: The roles of Airflow's SimpleAuthManager: each may what those before it may.
_ROLES = {"vera": "viewer", "otto": "user", "olga": "op", "ada": "admin"}
#: Somebody who may act, and to whom the third flow is denied.
_DENIED = STORIES[2].dag_id
FLOW = STORIES[0].dag_id
VERIFY = FLOW.replace("mirror__", "mirror_verify__")


@dataclass(frozen=True, slots=True)
class AirflowSite:
    """A running API server that has parsed the flows' DAGs."""

    url: str

    def client(self, user: str | None = None) -> httpx.Client:
        """A browser that is logged in as somebody, or not at all."""
        cookies = {} if user is None else {"_token": self.token(user)}
        return httpx.Client(base_url=self.url, cookies=cookies, trust_env=False, timeout=60)

    def token(self, user: str) -> str:
        """What a login gives."""
        login = {"username": user, "password": _PASSWORDS[user]}
        answer = httpx.post(f"{self.url}/auth/token", json=login, trust_env=False, timeout=60)
        return str(answer.json()["access_token"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowSite]:
    """Airflow's API server with the plugins folder of this project, one user who may look and one who may act."""
    folder = tmp_path_factory.mktemp("page")
    config = write_config(folder)
    seed(config)
    home = folder / "airflow"
    home.mkdir()
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps(_PASSWORDS))
    (port,) = free_ports(1)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")},
        **airflow_settings(home, _PROJECT, port),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
            f"{name}:{role}" for name, role in {**_ROLES, "dora": "user"}.items()
        ),
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.support.airflow.dag_by_dag_auth.DagByDagAuthManager",
        # See tests/support/airflow/dag_by_dag_auth.py.
        "TEST_DENIED_DAGS": f"dora={_DENIED},{_DENIED.replace('mirror__', 'mirror_verify__')}",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__API_AUTH__JWT_SECRET": "only-for-this-test-" * 4,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(_PROJECT),
        "MIRROR_CONFIG": str(config),
        "MIRROR_STATE_DIR": str(folder),
    }
    airflow = str(Path(sys.executable).with_name("airflow"))
    migrate(home)
    done = subprocess.run(
        [airflow, "dags", "reserialize"], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    log = folder / "api-server.log"
    process = start([airflow, "api-server"], log=log, pid_file=folder / "api-server.pid", env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(url):
            assert process.is_running, tail(log, 40)
            assert time.monotonic() < deadline, tail(log, 40)
            time.sleep(0.5)
        yield AirflowSite(url)
    finally:
        process.stop(grace_seconds=10)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v2/version", trust_env=False).is_success
    except httpx.TransportError:
        return False


def asked(client: httpx.Client, route: Route, dag_id: str = FLOW) -> httpx.Response:
    """Each route of the page with what it is there for."""
    address = "/replication" + route.path.format(**route.path_values(dag_id))
    if route.method == "POST":
        return client.post(address, json=route.order(), headers=ACTION)
    return client.get(address, params=route.query_values())


ROUTES = routes_of(page_app(None, Airflow()))


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_nobody_sees_or_does_anything_without_a_login(site: AirflowSite, route: Route) -> None:
    with site.client() as stranger:
        answer = asked(stranger, route)

    assert answer.status_code == 401
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ."])
def test_a_token_that_airflow_did_not_give_is_refused(site: AirflowSite, token: str) -> None:
    with httpx.Client(base_url=site.url, cookies={"_token": token}, trust_env=False, timeout=60) as stranger:
        by_cookie = stranger.get("/replication/api/overview").status_code
    with site.client() as stranger:
        bearer = {"Authorization": f"Bearer {token}"}
        by_header = stranger.get("/replication/api/overview", headers=bearer).status_code

    assert {by_cookie, by_header} <= {401, 403}


@pytest.mark.parametrize("route", [route for route in ROUTES if route.method == "POST"], ids=str)
def test_a_viewer_may_do_nothing_and_the_audit_says_that_they_tried(site: AirflowSite, route: Route) -> None:
    with site.client("vera") as viewer:
        answer = asked(viewer, route)
        audit = viewer.get(f"/replication/api/flows/{FLOW}/audit").json()["entries"]

    assert answer.status_code == 403
    assert (audit[0]["by"], audit[0]["action"].rpartition("-")[2]) == ("vera", "refused")


@pytest.mark.parametrize("user", sorted(_ROLES))
def test_what_each_role_of_airflow_may_do_is_what_its_own_buttons_allow(site: AirflowSite, user: str) -> None:
    acts = user != "vera"
    with site.client(user) as client:
        may = client.get(f"/replication/api/flows/{FLOW}").json()["may"]
        tried = client.post(f"/replication/api/flows/{FLOW}/run", json={"dry_run": True}, headers=ACTION).status_code

    assert may == dict.fromkeys(("pause", "run", "verify", "decide"), acts)
    assert tried == (200 if acts else 403)


@pytest.mark.parametrize("route", [route for route in ROUTES if "dag_id" in route.in_path], ids=str)
def test_a_flow_whose_dag_is_denied_answers_as_one_that_is_not_there(site: AirflowSite, route: Route) -> None:
    with site.client("dora") as user:
        denied = asked(user, route, _DENIED)
        missing = asked(user, route, "mirror__no__where")

    assert (denied.status_code, missing.status_code) == (404, 404)
    assert denied.text.replace(_DENIED, "") == missing.text.replace("mirror__no__where", "")


def test_a_flow_whose_dag_is_denied_is_in_no_list_and_in_no_metric(site: AirflowSite) -> None:
    name = STORIES[2].flow
    with site.client("dora") as user:
        listed = [flow["name"] for flow in user.get("/replication/api/overview").json()["flows"]]
        metrics = user.get("/replication/metrics").text
        own = user.get(f"/replication/api/flows/{FLOW}").json()["may"]["run"]
        cutovers = [each["flow"] for each in user.get("/replication/api/cutovers").json()["cutovers"]]

    assert listed == sorted(story.flow for story in STORIES if story.flow != name)
    assert name not in cutovers
    # Not by its name; its clusters are those of other flows, too.
    assert f'source="{STORIES[2].source}",target="{STORIES[2].target}"' not in metrics
    assert own is True


def test_a_flow_that_is_not_there_is_missing_for_everybody(site: AirflowSite) -> None:
    with site.client("ada") as admin:
        answer = admin.get("/replication/api/flows/mirror__no__where")

    assert answer.status_code == 404


def test_a_user_who_may_read_the_dags_sees_the_flows_and_may_not_act(site: AirflowSite) -> None:
    with site.client("vera") as viewer:
        overview = viewer.get("/replication/api/overview")
        detail = viewer.get(f"/replication/api/flows/{FLOW}")
        refused = [
            viewer.post(f"/replication/api/flows/{FLOW}/{act}", json=body, headers=ACTION).status_code
            for act, body in (("pause", {"paused": True}), ("run", {}), ("verify", {"mode": "recent"}))
        ]

    assert overview.status_code == 200
    assert [flow["name"] for flow in overview.json()["flows"]] == sorted(story.flow for story in STORIES)
    assert detail.json()["may"] == {"pause": False, "run": False, "verify": False, "decide": False}
    assert refused == [403, 403, 403]


def test_a_cookie_alone_does_nothing(site: AirflowSite) -> None:
    with site.client("otto") as user:
        forged = user.post(f"/replication/api/flows/{FLOW}/pause", json={"paused": True})
        from_elsewhere = user.post(
            f"/replication/api/flows/{FLOW}/pause",
            json={"paused": True},
            headers={**ACTION, "Origin": "https://elsewhere.example"},
        )

    assert (forged.status_code, from_elsewhere.status_code) == (403, 403)


def test_a_user_who_may_act_pauses_runs_and_verifies_and_the_audit_keeps_it(site: AirflowSite) -> None:
    with site.client("otto") as user:
        user.headers.update({"X-Replication-Action": "1", "Origin": site.url})

        unpaused = user.post(f"/replication/api/flows/{FLOW}/pause", json={"paused": False})
        run = user.post(f"/replication/api/flows/{FLOW}/run", json={"dry_run": True})
        verification = user.post(f"/replication/api/flows/{FLOW}/verify", json={"mode": "sample"})

        assert [answer.status_code for answer in (unpaused, run, verification)] == [200, 200, 200], run.text
        token = {"Authorization": f"Bearer {site.token('otto')}"}
        dag = user.get(f"/api/v2/dags/{FLOW}", headers=token).json()
        started = user.get(f"/api/v2/dags/{FLOW}/dagRuns/{run.json()['run_id']}", headers=token).json()
        compared = user.get(f"/api/v2/dags/{VERIFY}/dagRuns/{verification.json()['run_id']}", headers=token).json()
        audit = user.get(f"/replication/api/flows/{FLOW}/audit").json()["entries"]
    assert dag["is_paused"] is False
    assert (started["conf"]["dry_run"], started["triggering_user_name"]) == (True, "otto")
    assert compared["conf"]["mode"] == "sample"
    assert [(entry["by"], entry["action"]) for entry in audit[:3]] == [
        ("otto", "verify"),
        ("otto", "run-now"),
        ("otto", "unpause"),
    ]


def test_airflow_has_one_such_plugin_with_a_place_in_the_menu_and_on_each_dag(site: AirflowSite) -> None:
    with site.client("otto") as user:
        token = {"Authorization": f"Bearer {site.token('otto')}"}
        plugins = user.get("/api/v2/plugins", headers=token).json()["plugins"]
        errors = user.get("/api/v2/plugins/importErrors", headers=token).json()["import_errors"]

    (plugin,) = [plugin for plugin in plugins if plugin["name"] == "replication"]
    assert {view["destination"]: view["href"] for view in plugin["external_views"]} == {
        "nav": "/replication/",
        "dag": "/replication/?dag={DAG_ID}",
    }
    assert errors == []


def test_the_page_stands_in_airflows_own_frame_and_leads_back_to_its_dags(site: AirflowSite) -> None:
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
        context.add_cookies([{"name": "_token", "value": site.token("otto"), "url": site.url}])
        page = context.new_page()
        page.goto(site.url)
        page.get_by_role("link", name="Replication").click(timeout=60_000)
        inside = page.frame_locator("iframe[title=Replication]")

        inside.get_by_role("region", name="Flows").get_by_role("link", name="frankfurt→dublin").click(timeout=60_000)
        expect(inside.get_by_role("img", name="Lag (records): from")).to_be_visible()
        folder = os.environ.get("MIRROR_PAGE_SCREENSHOTS")
        if folder:
            page.screenshot(path=str(Path(folder) / "in-airflow.png"))
        inside.get_by_role("link", name="DAG in Airflow").click()

        page.wait_for_url(f"**/dags/{STORIES[1].dag_id}**")
        page.goto(f"{site.url}/dags/{FLOW}/plugin/replication-flow")
        expect(page.frame_locator("iframe[title=Replication]").locator(".flow-head h2")).to_have_text(
            "berlin → frankfurt", timeout=60_000
        )


def test_prometheus_reads_the_metrics_with_a_token_of_airflow(site: AirflowSite) -> None:
    token = {"Authorization": f"Bearer {site.token('vera')}"}
    with site.client() as prometheus:
        answer = prometheus.get("/replication/metrics", headers=token)

    assert answer.status_code == 200
    assert STORIES[0].source in answer.text
