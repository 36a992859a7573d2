"""What people see and do on the page, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.ledger.seeded import STORIES, write_config
from tests.support.page.app import Airflow, Site, page_app, served_page

STALLED = "#/flow/mirror__berlin__cloud"


def test_the_overview_shows_every_flow_with_its_state_in_words(page: Page, site: Site) -> None:
    page.goto(site.url)

    rows = page.get_by_role("region", name="Flows").locator("tbody tr")
    expect(rows).to_have_count(len(STORIES))
    expect(rows.filter(has_text="berlin→cloud")).to_contain_text("decision needed")
    expect(rows.filter(has_text="paris→cloud")).to_contain_text("stale: 7 h ago")
    expect(rows.filter(has_text="lisbon→madrid")).to_contain_text("never observed")


def test_the_picture_names_each_flow_for_those_who_cannot_see_it(page: Page, site: Site) -> None:
    page.goto(site.url)

    picture = page.get_by_role("group", name="clusters and 8 flows between them")
    expect(picture.get_by_role("link")).to_have_count(len(STORIES))
    picture.get_by_role("link", name="berlin to frankfurt").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".flow-head h2")).to_have_text("berlin → frankfurt")


def test_the_state_tiles_and_the_text_narrow_the_list(page: Page, site: Site) -> None:
    page.goto(site.url)
    rows = page.get_by_role("region", name="Flows").locator("tbody tr")

    page.locator("button.tile[data-level=danger]").click()
    expect(rows).to_have_count(3)
    page.get_by_label("Filter flows").fill("oslo")
    expect(rows).to_have_count(1)


def test_partitions_are_sorted_and_filtered_by_the_server(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{STALLED}/partitions")
    panel = page.get_by_role("region", name="Partitions", exact=True)
    first = panel.locator("tbody tr").first

    expect(first).to_contain_text("shipments-0")
    panel.get_by_role("button", name="Partition", exact=True).click()
    expect(first).to_contain_text("audit.log-0")
    expect(panel.locator("th[aria-sort=ascending]")).to_have_text("Partition")
    panel.get_by_label("Reason").select_option("poison")
    expect(panel.locator("tbody tr")).to_have_count(1)
    panel.get_by_label("Reason").select_option("")
    panel.get_by_label("Topic contains").fill("ORDERS")
    expect(panel.locator("tbody tr")).to_have_count(6)


def test_a_cell_of_the_strip_narrows_the_table_to_its_topic(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{STALLED}/partitions")

    page.get_by_role("button", name="shipments-0: lag 640,000, stalled: retention gap").click()

    panel = page.get_by_role("region", name="Partitions", exact=True)
    expect(panel.locator("tbody tr")).to_have_count(6)


def test_a_group_opens_partition_by_partition(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{STALLED}/groups")

    page.get_by_role("button", name="billing").click()

    expect(page.get_by_role("region", name="Group billing").locator("tbody tr")).to_have_count(6)


def test_rounds_stand_beside_runs_with_what_was_expected_of_them(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{STALLED}/work")

    rows = page.get_by_role("region", name="Rounds").locator("tbody tr")

    expect(rows).to_have_count(20)
    expect(rows.first).to_contain_text("round 1 of berlin->cloud-0")
    expect(rows.first.locator("td[data-label=Duration]")).to_have_text("44 s")
    expect(rows.first.locator("td[data-label='Expected duration']")).to_have_text("40 s")
    expect(rows.first.locator("td[data-label='Oldest record age']")).to_have_text("6 min")


def test_an_action_says_what_will_happen_and_does_nothing_until_it_is_confirmed(page: Page, site: Site) -> None:
    site.airflow.triggered.clear()
    page.goto(f"{site.url}#/flow/mirror__berlin__frankfurt")

    page.get_by_role("button", name="Verify").click()
    dialog = page.get_by_role("dialog", name="Verify berlin->frankfurt?")
    expect(dialog).to_contain_text("changes nothing on either")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert site.airflow.triggered == []

    page.get_by_role("button", name="Verify").click()
    dialog.get_by_label("Full").check()
    dialog.get_by_role("button", name="Verify").click()
    expect(page.locator(".toast")).to_contain_text("Airflow created the run")
    assert site.airflow.triggered == [("mirror_verify__berlin__frankfurt", {"mode": "full"}, "marta")]


def test_a_gap_is_decided_after_the_consequences_were_told(page: Page, site: Site) -> None:
    site.airflow.triggered.clear()
    page.goto(f"{site.url}{STALLED}/proof")

    page.get_by_role("button", name="Resolve…").click()
    dialog = page.get_by_role("dialog", name="Resolve the gap in shipments-0")
    expect(dialog).to_contain_text("consumers see duplicates")
    dialog.get_by_label("Copy again").check()
    dialog.get_by_role("button", name="Resolve").click()

    expect(page.locator(".toast")).to_contain_text("Airflow created the run")
    assert site.airflow.triggered == [
        ("mirror__berlin__cloud", {"topics": ["shipments"], "gaps": "recopy"}, "marta"),
    ]


def test_a_refused_action_stays_in_the_dialog_with_its_reason(page: Page, site: Site) -> None:
    page.goto(f"{site.url}#/flow/mirror__oslo__dublin")
    page.get_by_role("button", name="Run now").click()
    site.airflow.dags = {}

    page.get_by_role("dialog").get_by_role("button", name="Run now").click()

    try:
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Airflow has no DAG")
    finally:
        site.airflow.dags = None
    page.get_by_role("button", name="Cancel").click()


def test_a_cutover_is_a_time_line_with_its_gates(page: Page, site: Site) -> None:
    page.goto(f"{site.url}#/cutover/orders-wave-1")

    steps = page.get_by_role("region", name="Steps").locator("li[data-step]")
    expect(steps).to_have_count(12)
    expect(steps.filter(has_text="approve")).to_contain_text("the flow frankfurt->berlin is not enabled")
    expect(page.get_by_role("progressbar", name="Steps passed")).to_have_attribute("aria-valuenow", "58")
    # Nobody carries it out: what stopped it is said above the steps that passed, next to the way to its DAG.
    expect(page.get_by_role("alert")).to_contain_text("the flow frankfurt->berlin is not enabled")
    expect(page.get_by_role("link", name="Cutover DAG in Airflow")).to_be_visible()


def test_the_theme_follows_the_system_until_it_is_chosen(page: Page, site: Site) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(site.url)
    theme = page.get_by_role("button", name="Theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    theme.click()

    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


@pytest.mark.parametrize("width", [1060, 1200, 1280, 1440])
def test_nothing_is_cut_off_in_the_tiles_and_the_picture_of_the_clusters(page: Page, site: Site, width: int) -> None:
    """Beside Airflow's menu, the frame of the page is narrower than the window."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(site.url)
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")

    for part in (".tile", ".graph-scroll"):
        wider = page.locator(part).evaluate_all("parts => parts.map(each => each.scrollWidth - each.clientWidth)")
        assert wider == [0] * len(wider) != [], part


@pytest.mark.parametrize("place", ["", f"{STALLED}/lag", f"{STALLED}/partitions", "#/cutover/orders-wave-1"])
def test_nothing_is_wider_than_a_telephone(phone: Page, site: Site, place: str) -> None:
    phone.goto(site.url + place)
    expect(phone.locator("main")).not_to_have_attribute("aria-busy", "true")

    wider = phone.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert wider == 0
    expect(phone.locator("html")).to_have_attribute("data-theme", "dark")


def test_without_flows_the_page_says_how_to_make_one(page: Page, tmp_path: Path) -> None:
    config = write_config(tmp_path, STORIES[:1])
    config.write_text(config.read_text().replace("enabled = true", "enabled = false"))

    with served_page(page_app(config, Airflow())) as url:
        page.goto(url)
        expect(page.get_by_role("alert")).to_contain_text("set SOURCE->TARGET.enabled = true")
        expect(page.get_by_role("heading", name="No flows to show")).to_be_visible()
        expect(page.locator("main .empty")).to_contain_text(str(config))


def test_before_the_first_run_flows_are_shown_as_never_run(page: Page, tmp_path: Path) -> None:
    with served_page(page_app(write_config(tmp_path, STORIES[:2]), Airflow())) as url:
        page.goto(url)
        expect(page.locator(".state", has_text="never ran")).to_have_count(2)
        page.get_by_role("region", name="Flows").get_by_role("link").first.click()
        expect(page.locator("main")).to_contain_text("No observations in this time range.")


def test_a_server_that_is_gone_is_said_and_can_be_tried_again(page: Page, site: Site) -> None:
    page.goto(site.url)
    expect(page.get_by_role("region", name="Flows")).to_be_visible()

    page.route("**/api/**", lambda route: route.abort())
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("alert")).to_contain_text("Airflow's API server does not respond")

    page.unroute("**/api/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="Flows")).to_be_visible()


def test_given_a_slow_early_request_when_refreshed_then_the_server_is_asked_again(page: Page, site: Site) -> None:
    held: list[Route] = []
    page.route("**/early.js", lambda route: held.append(route))
    page.goto(site.url, wait_until="commit")
    expect(page.get_by_role("region", name="Flows")).to_be_visible()
    with page.expect_response("**/early.js"):
        held[0].continue_()
    page.wait_for_load_state()

    with page.expect_request("**/api/overview"):
        page.get_by_role("button", name="Refresh").click()


def test_a_dag_that_is_no_flow_is_answered_in_words(page: Page, site: Site) -> None:
    page.goto(f"{site.url}?dag=somebody_elses")

    expect(page.get_by_role("alert")).to_contain_text("There is no flow with the DAG somebody_elses")
