"""Debian's Chromium without a window, driven by Playwright; it needs no browser of Playwright's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

# Playwright waits 5 s by default, which a machine that runs brokers at the same time may need for one answer.
expect.set_options(timeout=30_000)

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class BrowserMissingError(RuntimeError):
    """The machine has no Chromium."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start it for as long as it is needed.

    Raises:
        BrowserMissingError: it is not installed.
    """
    with sync_playwright() as playwright:
        # The sandbox of its own needs rights that a root user in a container does not have; only our page is shown.
        browser = playwright.chromium.launch(executable_path=str(_find()), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def complaints(page: Page) -> list[str]:
    """What the browser will have to complain about: errors of scripts, and what the page's policy forbade."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    return found


def _find() -> Path:
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise BrowserMissingError("there is no Chromium: install it with: apt-get install -y chromium")
