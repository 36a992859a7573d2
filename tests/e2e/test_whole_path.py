"""The whole path in a real Airflow: the page triggers a flow, which copies by Spark, and the page shows it healthy.

Then who may see the page and who may act, with the flows of a made-up ledger in addition.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, expect

from mirror_lib.features.demo.airflow_api import DagRunStatus
from tests.support.airflow.shared import SharedAirflow, shared_airflow
from tests.support.clusters import KafkaPair
from tests.support.cutovers import commit, committed
from tests.support.flow_files import flow_between
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.names import unique_name
from tests.support.page.app import ACTION, Airflow, page_app
from tests.support.page.browser import chromium
from tests.support.page.routes import Route, routes_of

pytestmark = pytest.mark.timeout(600)

_PASSWORDS = {"vera": "look-only", "otto": "may-act", "olga": "may-operate", "admin": "may-all", "dora": "may-some"}
#: The roles of Airflow's SimpleAuthManager: each may what those before it may.
_ROLES = {"vera": "viewer", "otto": "user", "olga": "op", "admin": "admin"}
#: Somebody who may act, and to whom the third flow is denied.
_DENIED = STORIES[2].dag_id
FLOW = STORIES[0].dag_id
VERIFY = FLOW.replace("mirror__", "mirror_verify__")
#: The flow that really runs, with its own configuration file and ledger.
COPIED = "mirror__rome__vienna"
FLOWS = sorted(["rome->vienna", *(story.flow for story in STORIES)])
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS, RECORDS = 2, 400


@dataclass(frozen=True, slots=True)
class AirflowSite:
    """A running API server that has parsed the flows' DAGs, and the run of one of them."""

    url: str
    topics: tuple[str, ...]
    run: DagRunStatus
    logs: str

    def client(self, user: str | None = None) -> httpx.Client:
        """A browser that is logged in as somebody, or not at all."""
        cookies = {} if user is None else {"_token": _token(self.url, user)}
        return httpx.Client(base_url=self.url, cookies=cookies, trust_env=False, timeout=60)

    def bearer(self, user: str) -> dict[str, str]:
        """The header of a program that is logged in."""
        return {"Authorization": f"Bearer {_token(self.url, user)}"}


def _token(url: str, user: str) -> str:
    """What a login gives."""
    login = {"username": user, "password": _PASSWORDS[user]}
    answer = httpx.post(f"{url}/auth/token", json=login, trust_env=False, timeout=60)
    return str(answer.json()["access_token"])


@pytest.fixture(scope="module")
def topics(kafka_pair: KafkaPair) -> tuple[str, ...]:
    """A topic for each codec, with headers, old timestamps, tombstones and records without a key."""
    prefix = unique_name("shop")
    names = tuple(f"{prefix}-{codec}" for codec in CODECS)
    for name in names:
        create_topic(kafka_pair.source, name, partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            batch = records(RECORDS, size=300, partition=partition)
            batch[1] = replace(batch[1], value=None)
            batch[2] = replace(batch[2], key=None)
            produce(kafka_pair.source, name, batch, compression_type=name.rpartition("-")[2])
    commit(kafka_pair.source, prefix, names[0], {0: 30, 1: RECORDS})
    return names


@pytest.fixture(scope="module")
def site(
    kafka_pair: KafkaPair, topics: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AirflowSite]:
    """Airflow with users who may look and who may act, after one of them has run the flow that copies."""
    folder = tmp_path_factory.mktemp("page")
    seeded = write_config(folder)
    seed(seeded)
    config = folder / "copied.properties"
    prefix = topics[0].rpartition("-")[0]
    own = (f"rome->vienna.groups = {prefix}", "sync.group.offsets.enabled = true", "tasks.max = 2")
    ledger = f"mirror.ledger.url = sqlite:///{folder}/copied.db"
    config.write_text(flow_between(kafka_pair, "rome->vienna", f"{prefix}.*", prefix, *own, ledger))
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps(_PASSWORDS))
    more = {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
            f"{name}:{role}" for name, role in {**_ROLES, "dora": "user"}.items()
        ),
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.support.airflow.dag_by_dag_auth.DagByDagAuthManager",
        # See tests/support/airflow/dag_by_dag_auth.py.
        "TEST_DENIED_DAGS": f"dora={_DENIED},{_verify(_DENIED)}",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
    }
    files, password = [seeded, config], _PASSWORDS["admin"]
    with shared_airflow(folder, files, more, password=password, triggerer=False) as airflow:
        # All flows of a DAG file come at the same time.
        for dag_id in (COPIED, _verify(COPIED)):
            airflow.wait(partial(airflow.api.has_dag, dag_id), f"the DAG {dag_id}")
        run = _run_by_the_page(airflow)
        # The other flows lead to clusters that do not exist: nobody needs their tasks to run.
        for part in ("scheduler", "dag-processor"):
            airflow.running.parts.end(part)
        yield AirflowSite(airflow.running.url, topics, run, airflow.task_logs(run.run_id))


def _verify(dag_id: str) -> str:
    return dag_id.replace("mirror__", "mirror_verify__")


def _run_by_the_page(airflow: SharedAirflow) -> DagRunStatus:
    """Unpause the flow and run it now, by the buttons of the page, and wait for the end of the run."""
    with chromium() as browser:
        page = _logged_in(browser.new_context(), airflow.running.url).new_page()
        page.goto(f"{airflow.running.url}/replication/#/flow/{COPIED}")
        main, dialog = page.locator("#main"), page.get_by_role("dialog")
        main.get_by_role("button", name="Unpause").click()
        dialog.get_by_role("button", name="Unpause").click()
        expect(main.get_by_role("button", name="Pause", exact=True)).to_be_visible()
        main.get_by_role("button", name="Run now").click()
        dialog.get_by_role("button", name="Run now").click()
        airflow.wait(lambda: bool(airflow.api.runs(COPIED)), "the run")
    (run_id,) = airflow.api.runs(COPIED)
    return airflow.end_of(COPIED, run_id)


def _logged_in(context: BrowserContext, url: str) -> BrowserContext:
    context.add_cookies([{"name": "_token", "value": _token(url, "otto"), "url": url}])
    return context


def test_a_run_copies_every_record_as_it_is_and_does_the_sync_steps(site: AirflowSite, kafka_pair: KafkaPair) -> None:
    steps = ("sync_topics", "replicate", "sync_group_offsets", "sync_topic_configs", "report")
    prefix = site.topics[0].rpartition("-")[0]

    assert site.run.state == "success", site.logs
    assert {step: site.run.tasks[step] for step in steps} == dict.fromkeys(steps, "success")
    # The step that commits has written the checkpoints.
    assert site.run.tasks["translate_offsets"] == "skipped"
    assert {"failed", "upstream_failed"}.isdisjoint(site.run.tasks.values())
    for topic in site.topics:
        copies = consume(kafka_pair.target, f"rome.{topic}")
        assert copies == consume(kafka_pair.source, topic)
        assert len(copies) == PARTITIONS * RECORDS
    copied = committed(kafka_pair.target, prefix, f"rome.{site.topics[0]}", PARTITIONS)
    assert copied == {0: 30, 1: RECORDS}


def test_the_page_shows_that_the_flow_is_healthy_with_the_numbers_of_its_run(site: AirflowSite) -> None:
    total, partitions = len(CODECS) * PARTITIONS * RECORDS, len(CODECS) * PARTITIONS
    with chromium() as browser:
        page = _logged_in(browser.new_context(), site.url).new_page()
        page.goto(f"{site.url}/replication/")
        row = page.get_by_role("region", name="Flows").locator("tbody tr").filter(has_text="rome→vienna")

        expect(row.locator("td[data-label=State]")).to_have_text("up to date")
        expect(row.locator("td[data-label='Lag (records)']")).to_have_text("0")
        expect(row.locator("td[data-label='Last run']")).to_contain_text("succeeded")
        row.get_by_role("link", name="rome→vienna").click()
        expect(page.locator(".flow-head")).to_contain_text("up to date")
        expect(page.locator("main")).to_contain_text(f"0 of {partitions} partitions lagging")
        page.get_by_role("link", name="Runs and steps").click()
        run = page.get_by_role("region", name="Runs").locator("tbody tr")
        expect(run).to_have_count(1)
        expect(run.locator("td[data-label=Records]")).to_have_text(f"{total:,}")
        expect(run.locator("td[data-label=Partitions]")).to_have_text(str(partitions))
        steps = page.get_by_role("region", name="Sync steps")
        expect(steps.locator("tbody")).to_contain_text("sync group offsets")


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
        listed = [flow["name"] for flow in client.get("/replication/api/overview").json()["flows"]]
        may = client.get(f"/replication/api/flows/{FLOW}").json()["may"]
        tried = client.post(f"/replication/api/flows/{FLOW}/run", json={"dry_run": True}, headers=ACTION).status_code

    assert listed == FLOWS
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

    assert listed == [flow for flow in FLOWS if flow != name]
    assert name not in cutovers
    # Not by its name; its clusters are those of other flows, too.
    assert f'source="{STORIES[2].source}",target="{STORIES[2].target}"' not in metrics
    assert own is True


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
        token = site.bearer("otto")
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
        token = site.bearer("otto")
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
        page = _logged_in(context, site.url).new_page()
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
    with site.client() as prometheus:
        answer = prometheus.get("/replication/metrics", headers=site.bearer("vera"))

    assert answer.status_code == 200
    assert STORIES[0].source in answer.text
