"""`python -m tests.support.page.picture`: make the picture of the page in README.md and docs/page.md anew.

The page shows the made-up flows of its tests.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import expect

from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.page.app import Airflow, page_app, served_page
from tests.support.page.browser import chromium

_PICTURE = Path(__file__).resolve().parents[3] / "docs" / "images" / "page.png"
_SIZE = {"width": 1360, "height": 1000}


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), STORIES)
        seed(config)
        with served_page(page_app(config, Airflow())) as url, chromium() as browser:
            page = browser.new_page(viewport=_SIZE, color_scheme="light")
            page.goto(url)
            expect(page.get_by_role("region", name="Flows")).to_be_visible()
            page.wait_for_load_state("networkidle")
            _PICTURE.parent.mkdir(exist_ok=True)
            page.screenshot(path=str(_PICTURE))


if __name__ == "__main__":
    main()
