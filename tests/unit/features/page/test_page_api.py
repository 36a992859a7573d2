"""What the page's API tells, and to whom."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.features.cutover.machine import progress
from mirror_lib.features.cutover.opening import open_cutover
from mirror_lib.features.cutover.report import progress_text
from mirror_lib.features.cutover.tables.carriers import CarrierRow, Carriers
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.features.page.control import RunAct
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.offset_rows import PositionRow
from tests.support.ledger.rows import transaction_count
from tests.support.ledger.seeded import STORIES, write_config
from tests.support.page.app import Airflow, Person, page_app
from tests.support.page.client import Client

STALLED = "/api/flows/mirror__berlin__cloud"
READ = (
    *("", "/history", "/runs", "/rounds", "/partitions", "/partitions/strip", "/groups"),
    *("/verification", "/gaps", "/heartbeats"),
)


def test_the_overview_has_every_enabled_flow_with_its_state(client: Client) -> None:
    answer = client.get("/api/overview").json()

    words = {flow["name"]: flow["state"]["word"] for flow in answer["flows"]}
    assert words == {
        "berlin->frankfurt": "small lag",
        "frankfurt->dublin": "sync step failed",
        "berlin->cloud": "decision needed",
        "dublin->cloud": "tight",
        "madrid->frankfurt": "failed",
        "oslo->dublin": "differs",
        "paris->cloud": "overdue",
        "lisbon->madrid": "never ran",
    }
    assert answer["problems"] == []


def test_every_number_carries_the_moment_at_which_it_was_true(client: Client) -> None:
    flows = {flow["name"]: flow for flow in client.get("/api/overview").json()["flows"]}

    age = datetime.now(UTC) - datetime.fromisoformat(flows["paris->cloud"]["seen"]["at"])
    assert age.total_seconds() > 7 * 3600
    # `mirror.schedule` is 5m: three intervals.
    assert flows["paris->cloud"]["seen"]["stale_after_seconds"] == 900
    assert flows["lisbon->madrid"]["seen"] is None
    assert flows["lisbon->madrid"]["records_behind"] is None
    # What never comes.
    tight = client.get("/api/flows/mirror__dublin__cloud").json()["flow"]
    assert (tight["catch_up_seconds"], tight["headroom_seconds"]) == ("never", 7200)


def test_records_of_aborted_transactions_are_named_next_to_the_gaps(acting: Client, own_config: Path) -> None:
    flow = STORIES[2].flow
    with open_ledger(load(own_config)) as ledger:
        at = PositionRow(flow=flow, topic="orders", partition=0, offset=9, target_offset=10, state="closed")
        ledger.save_positions([at])
        ledger.save_transaction_counts([transaction_count(flow=flow, aborted=3)])

    answer = acting.get(f"/api/flows/mirror__{flow.replace('->', '__')}/gaps").json()

    assert answer["uncommitted"][0].startswith("3 records of aborted transactions are on the target")


def test_the_history_is_thinned_to_the_worst_of_each_stretch(client: Client) -> None:
    lag = client.get(f"{STALLED}/history?hours=2").json()["lag"]

    assert 20 <= len(lag) <= 25
    assert [point["at"] for point in lag] == sorted(point["at"] for point in lag)


def test_partitions_come_page_by_page_the_worst_first_and_are_narrowed(client: Client) -> None:
    first = client.get(f"{STALLED}/partitions?size=10").json()
    last = client.get(f"{STALLED}/partitions?size=10&page=5").json()

    assert (first["total"], len(first["rows"]), len(last["rows"])) == (48, 10, 8)
    assert first["reasons"] == {"poison": 1, "retention-gap": 1}
    behind = [row["records_behind"] for row in [*first["rows"], *last["rows"]]]
    assert behind == sorted(behind, reverse=True)
    for query, found in {
        "reason=poison": 1,
        "outlook=already-lost": 1,
        "topic=ORDER": 6,
        "topic=%25": 0,
        "lagging=true": 17,
    }.items():
        assert client.get(f"{STALLED}/partitions?{query}").json()["total"] == found, query


def test_rounds_are_told_with_what_was_expected_of_them_and_how_old_their_records_were(client: Client) -> None:
    rounds = client.get(f"{STALLED}/rounds?limit=2").json()["rounds"]

    assert [each["run_id"] for each in rounds] == ["berlin->cloud-0", "berlin->cloud-1"]
    assert (rounds[0]["seconds"], rounds[0]["expected_seconds"]) == (43.5, 40.0)
    assert (rounds[0]["oldest_age_seconds"], rounds[0]["newest_age_seconds"]) == (340.0, 44.5)
    assert rounds[0]["outstanding"] == rounds[0]["records"] == 180_000
    # One that broke off.
    newest, *_ = client.get("/api/flows/mirror__madrid__frankfurt/rounds").json()["rounds"]
    assert (newest["committed"], newest["outstanding"], newest["oldest_age_seconds"]) == (False, 50_000, None)


def test_groups_are_told_with_what_they_would_read_again_and_why(client: Client) -> None:
    rows = client.get(f"{STALLED}/groups").json()["rows"]
    billing = client.get(f"{STALLED}/groups/partitions?group=billing").json()["rows"]

    # Six partitions: 100 + 101 + ... + 105.
    assert [(row["group"], row["duplicates"], row["reasons"]) for row in rows[:2]] == [
        ("billing", 615, {"between-syncs": 6}),
        ("search-indexer", 615, {"between-syncs": 6}),
    ]
    assert [row["duplicates"] for row in billing] == [105, 104, 103, 102, 101, 100]


def test_a_difference_is_told_with_its_place(client: Client) -> None:
    state = client.get("/api/flows/mirror__oslo__dublin/verification").json()

    assert (state["equal"], state["different"]) == (47, 1)
    assert [(row["topic"], row["partition"]) for row in state["differences"]] == [("audit.log", 0)]
    assert [run["different"] for run in state["verifications"]] == [1]
    # The DAG of verifications leads to its flow.
    assert client.get("/api/flows/mirror_verify__oslo__dublin").json()["flow"]["name"] == "oslo->dublin"


def test_a_cutover_has_every_step_in_its_order_with_its_attempts(client: Client) -> None:
    cutover = client.get("/api/cutovers/orders-wave-1").json()

    states = [(step["step"], step["state"], len(step["attempts"])) for step in cutover["steps"]]
    assert states[:5] == [
        *((step, "passed", 1) for step in ("inventory", "preflight", "rehearse", "freeze")),
        ("drain", "passed", 2),
    ]
    assert states[7:] == [
        ("approve", "waiting", 1),
        *((step, "to come", 0) for step in ("switch", "release", "watch", "finish")),
    ]
    assert (cutover["passed"], cutover["producers_are_stopped"]) == (7, True)


def test_a_cutover_leads_to_the_dag_that_carries_it_on_where_airflow_has_it(client: Client, airflow: Airflow) -> None:
    path, own = "/api/cutovers/orders-wave-1", STORIES[0].dag_id.replace("mirror__", "mirror_cutover__")

    assert client.get(path).json()["cutover_dag_id"] == own
    airflow.dags = {STORIES[0].dag_id: False}
    assert client.get(path).json()["cutover_dag_id"] is None
    airflow.dags = None
    airflow.person = Person(reads=frozenset({STORIES[0].dag_id}))
    assert client.get(path).json()["cutover_dag_id"] is None


def test_a_step_whose_process_has_ended_is_not_under_way(acting: Client, own_config: Path) -> None:
    with open_ledger(load(own_config)) as ledger:
        (waiting,) = [each for each in Cutovers(ledger).steps("orders-wave-1") if each.step == "approve"]
        Cutovers(ledger).save_step(replace(waiting, state="running"))
        Cutovers(ledger).move("orders-wave-1", state="running", step="approve")
        told = progress_text(progress(ledger, open_cutover(ledger, "orders-wave-1")))

    (step,) = [each for each in acting.get("/api/cutovers/orders-wave-1").json()["steps"] if each["step"] == "approve"]

    assert (step["state"], step["attempts"][-1]["state"]) == ("interrupted", "interrupted")
    listed = [*acting.get("/api/cutovers").json()["cutovers"], *acting.get("/api/overview").json()["cutovers"]]
    assert {each["state"] for each in listed if each["name"] == "orders-wave-1"} == {"interrupted"}
    assert re.search(r"approve +interrupted", told)
    assert "Continue: mirror cutover run orders-wave-1, or trigger its DAG with this name." in told
    assert ".;" not in told


@pytest.mark.parametrize(("steps", "shown"), [(0, "defined"), (1, "stopped")])
def test_a_cutover_whose_process_ended_between_two_steps_was_not_interrupted(
    acting: Client, own_config: Path, steps: int, shown: str
) -> None:
    with open_ledger(load(own_config)) as ledger:
        row = Cutovers(ledger).find("orders-wave-1")
        assert row is not None
        Cutovers(ledger).create(replace(row, name="begun", state="running", step="inventory"))
        for each in Cutovers(ledger).steps("orders-wave-1")[:steps]:
            Cutovers(ledger).save_step(replace(each, cutover="begun"))

    listed = [*acting.get("/api/cutovers").json()["cutovers"], *acting.get("/api/overview").json()["cutovers"]]

    assert [each["state"] for each in listed if each["name"] == "begun"] == [shown, shown]


def test_a_question_whose_process_died_waits_for_nobody(acting: Client, own_config: Path) -> None:
    carrier = CarrierRow(
        cutover="orders-wave-1", id="job", kind="run", by="ann", holder="h", since=datetime(2026, 1, 1, tzinfo=UTC)
    )
    with open_ledger(load(own_config)) as ledger:
        Carriers(ledger).begin(carrier)

    told = acting.get("/api/cutovers/orders-wave-1").json()

    (step,) = [each for each in told["steps"] if each["step"] == "approve"]
    assert (told["cutover"]["state"], step["state"]) == ("interrupted", "interrupted")
    assert told["cutover"]["who"] == "No process runs it, and the writers are stopped. The process of ann died."


def test_a_cutover_that_nobody_carries_out_says_so_and_what_an_operator_can_do(client: Client) -> None:
    cutover = client.get("/api/cutovers/orders-wave-1").json()["cutover"]
    under_way = client.get("/api/overview").json()["cutovers"]

    assert (cutover["now"], cutover["unattended"], cutover["asks"]) == ("stopped-frozen", True, None)
    assert cutover["who"] == "No process runs it, and the writers are stopped."
    assert cutover["choices"] == ["trigger", "roll back"]
    assert [(each["who"], each["unattended"], each["writers_wait"]) for each in under_way] == [
        (cutover["who"], True, True)
    ]


def test_a_flow_whose_dag_may_not_be_read_is_not_there(seeded_config: Path, airflow: Airflow) -> None:
    airflow.person = Person(reads=frozenset({"mirror__oslo__dublin"}))
    client = Client(page_app(seeded_config, airflow))

    overview = client.get("/api/overview").json()

    assert [flow["name"] for flow in overview["flows"]] == ["oslo->dublin"]
    assert overview["clusters"] == ["dublin", "oslo"]
    assert overview["cutovers"] == []
    assert overview["hidden"] == 7
    assert [client.get(STALLED + path).status_code for path in READ] == [404] * len(READ)
    assert client.get("/api/cutovers").json()["cutovers"] == []
    assert client.get("/api/cutovers/orders-wave-1").status_code == 404


def test_people_who_are_not_logged_in_are_led_to_the_login(client: Client, airflow: Airflow) -> None:
    airflow.person = None

    answer = client.get("/", headers={"Accept": "text/html"})

    assert answer.status_code == 401
    assert 'href="/auth/login?next=http://page.example/"' in answer.text


def test_before_the_first_run_there_is_a_page_and_no_ledger_is_made(tmp_path: Path, airflow: Airflow) -> None:
    client = Client(page_app(write_config(tmp_path, STORIES[:1]), airflow))

    answers = [client.get(f"/api/flows/{STORIES[0].dag_id}{path}").status_code for path in READ]

    assert answers == [200] * len(READ)
    assert not (tmp_path / "ledger.sqlite3").exists()


def test_a_ledger_that_cannot_be_used_is_a_problem_that_says_what_to_do(tmp_path: Path, airflow: Airflow) -> None:
    config = write_config(tmp_path, STORIES[:1])
    (tmp_path / "ledger.sqlite3").write_bytes(b"no database" * 200)
    client = Client(page_app(config, airflow))

    overview, flow = client.get("/api/overview"), client.get(f"/api/flows/{STORIES[0].dag_id}/runs")

    assert overview.status_code == 200
    assert [problem["reason"] for problem in overview.json()["problems"]] == ["ledger"]
    assert flow.status_code == 503
    assert "restore it from a backup" in flow.json()["detail"]["action"]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("{good}\n{flow}.tasks.max = many\n", id="one line of a file"),
        pytest.param("clusters = a\na->a.enabled = true\nclusters\n", id="the whole file"),
    ],
)
def test_a_broken_file_names_no_flow_to_somebody_who_may_not_read_all_its_flows(tmp_path: Path, broken: str) -> None:
    mine, other = STORIES[:2]
    config = write_config(tmp_path, STORIES[:2])
    config.write_text(broken.format(good=config.read_text(), flow=other.flow))
    everybody, one = Airflow(), Airflow(person=Person(reads=frozenset({mine.dag_id})))

    seen, hidden = (Client(page_app(config, each)).get("/api/overview").json() for each in (everybody, one))

    assert len(seen["problems"]) == len(hidden["problems"]) == 1
    assert str(config) in json.dumps(seen["problems"])
    assert not [text for text in (other.flow, str(config), other.dag_id) if text in json.dumps(hidden)]


def test_the_file_of_the_metrics_token_is_named_to_nobody(
    seeded_config: Path, airflow: Airflow, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(page_app(seeded_config, airflow, MIRROR_METRICS_TOKEN_FILE="/s3cret/token"))

    answer = client.get("/metrics", headers={"Authorization": "Bearer x"})

    assert answer.status_code >= 400
    assert "s3cret" not in answer.text
    assert "/s3cret/token cannot be read" in caplog.text


def test_answers_are_kept_by_nobody_and_only_files_of_the_page_are_served(client: Client) -> None:
    page, data = client.get("/"), client.get("/api/overview")

    assert data.headers["Cache-Control"] == "no-store"
    policy = page.headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "script-src 'self';", "frame-ancestors 'self'"):
        assert part in policy
    assert "unsafe" not in policy
    names = ("main.js", "page.css", "icon.svg", "../app.py", "..%2Fapp.py", "nothing.js", "%2e%2e")
    assert [client.get(f"/static/{name}").status_code for name in names] == [200, 200, 200, 404, 404, 404, 404]
    assert client.get("/static/main.js").headers["Content-Type"].startswith("text/javascript")


def test_the_page_asks_at_once_for_all_modules_that_the_overview_needs_and_for_no_other(client: Client) -> None:
    """One that is found only by the module that needs it comes a round trip later; others would keep it waiting."""
    page = client.get("/").text
    needed, found = {"main.js", "view_overview.js"}, set[str]()
    while needed:
        name = needed.pop()
        found.add(name)
        text = (files("mirror_lib.features.page") / "static" / name).read_text(encoding="utf-8")
        needed |= set(re.findall(r'^import [^;]*"\./(\w+\.js)";', text, re.MULTILINE)) - found

    assert set(re.findall(r'rel="modulepreload" href="static/(\w+\.js)"', page)) == found


def test_the_metrics_are_those_of_flows_that_may_be_read_or_of_all_with_the_token_of_the_file(
    seeded_config: Path, tmp_path: Path, airflow: Airflow
) -> None:
    token = tmp_path / "token"
    token.write_text("a-long-secret\n")
    client = Client(page_app(seeded_config, airflow, MIRROR_METRICS_TOKEN_FILE=str(token)))
    airflow.person = Person(reads=frozenset({"mirror__oslo__dublin"}))
    some = client.get("/metrics")
    airflow.person = None

    every = client.get("/metrics", headers={"Authorization": "Bearer a-long-secret"})
    wrong = client.get("/metrics", headers={"Authorization": "Bearer another"})
    elsewhere = client.get("/api/overview", headers={"Authorization": "Bearer a-long-secret"})

    assert "oslo" in some.text
    assert "berlin" not in some.text
    assert "oslo" in every.text
    assert "berlin" in every.text
    assert (wrong.status_code, elsewhere.status_code) == (401, 401)


def test_a_run_that_holds_its_lock_is_running_and_one_that_died_is_not_called_so_anywhere(
    own_config: Path, airflow: Airflow
) -> None:
    flow, client = STORIES[2].flow, Client(page_app(own_config, airflow))
    with open_ledger(load(own_config)) as ledger:
        with hold_lock(ledger, flow=flow, run_id="alive", lease_seconds=60):
            ledger.start_run(run_id="alive", flow=flow, trigger="cli")
            alive, *_ = client.get(f"{STALLED}/runs").json()["runs"]
        ledger.finish_run("alive", state="succeeded")
        ledger.start_run(run_id="killed", flow=flow, trigger=f"airflow {STORIES[2].dag_id} manual__1")

    assert (alive["state"], alive["error"]) == ("running", None)
    (shown,) = [each for each in client.get("/api/overview").json()["flows"] if each["name"] == flow]
    killed, *others = client.get(f"{STALLED}/runs").json()["runs"]
    assert shown["last_run_state"] == "died"
    assert (killed["id"], killed["state"]) == ("killed", "died")
    assert "killed" in killed["error"]
    assert "next run continues" in killed["action"]
    assert "died" not in {run["state"] for run in others}


def test_a_run_that_was_ended_in_airflow_while_it_copied_says_who_did_that(own_config: Path, airflow: Airflow) -> None:
    # Given a run that copied, and has ended in good order
    with open_ledger(load(own_config)) as ledger:
        ledger.start_run(run_id="ended", flow=STORIES[2].flow, trigger=f"airflow {STORIES[2].dag_id} manual__7")
        ledger.finish_run("ended", state="succeeded")
        run = ledger.run("ended")
    began = run.started_at

    for at, audits, said in (
        (began, True, "olga marked it as failed in Airflow."),
        # Before it began and after its end.
        (began - timedelta(seconds=1), True, None),
        (began + timedelta(seconds=3600), True, None),
        # Whoever may not read the audit log is not told.
        (began, False, None),
    ):
        airflow.acts = (RunAct("manual__7", at, "olga", "marked it as failed"),)
        airflow.person = Person(audits=audits)
        runs = Client(page_app(own_config, airflow)).get(f"{STALLED}/runs").json()["runs"]
        assert next(each["ended_by"] for each in runs if each["id"] == "ended") == said, (at, audits)
