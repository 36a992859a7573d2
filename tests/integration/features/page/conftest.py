"""The page of a seeded ledger, served to a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.page.app import Airflow, Site, page_app, served_page
from tests.support.page.browser import chromium, complaints


# Not for the session: as long as Playwright runs, its event loop does, and whatever begins one in this thread fails.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    config = write_config(folder, STORIES)
    seed(config)
    airflow = Airflow()
    with served_page(page_app(config, airflow)) as url:
        yield Site(url, airflow)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that nothing went wrong in."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    tab = context.new_page()
    wrong = complaints(tab)
    yield tab
    context.close()
    # Answers that are errors are told by the page, and noted by the browser too.
    assert [each for each in wrong if not each.startswith("Failed to load resource")] == []


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """The same on a small dark screen."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    yield context.new_page()
    context.close()
