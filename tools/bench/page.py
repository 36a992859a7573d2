"""`./run bench page`: how long the replication page takes to show many flows from the ledger.

A ledger is seeded as it looks after a day of work, the page is served by a process of its own as Airflow's API server
would serve it, and Chromium loads it: every load in a context without a cache. A load counts from the navigation until
the table has a row for every flow and the picture of the most urgent ones is drawn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
from rich.console import Console

from tests.support.ledger.seeded import many, seed, write_config
from tests.support.page.app import Airflow, page_app, served_page
from tests.support.page.browser import chromium

#: The goal for 200 flows with 20,000 partitions.
GOAL_SECONDS = 1.0
_SHOWN = """flows =>
    document.querySelectorAll("section[aria-label='Flows'] tbody tr").length >= flows &&
    document.querySelectorAll("svg[role='group'] a").length > 0
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each load: the API response alone, and the whole page in the browser."""

    flows: int
    partitions: int
    answers: tuple[float, ...]
    pages: tuple[float, ...]


def measure(url: str, flows: int, partitions: int, loads: int) -> Measured:
    """Request the API, then load the page, this many times each."""
    answers = []
    with httpx.Client() as client:
        for _ in range(loads):
            began = time.perf_counter()
            client.get(f"{url}api/overview", timeout=60).raise_for_status()
            answers.append(time.perf_counter() - began)
    pages = []
    with chromium() as browser:
        for _ in range(loads):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            tab = context.new_page()
            tab.goto(url, wait_until="commit")
            tab.wait_for_function(_SHOWN, arg=flows)
            pages.append(tab.evaluate("performance.now()") / 1000)
            context.close()
    return Measured(flows, partitions, tuple(answers), tuple(pages))


def show(console: Console, measured: Measured) -> None:
    """Print median, minimum and maximum."""
    console.print(f"{measured.flows} flows with {measured.partitions:,} partitions, {len(measured.pages)} loads:")
    for what, seconds in (("the overview's answer", measured.answers), ("the page in Chromium", measured.pages)):
        console.print(
            f"  {what:22} median {statistics.median(seconds):.2f} s, first {seconds[0]:.2f} s, "
            f"least {min(seconds):.2f} s, most {max(seconds):.2f} s"
        )
    console.print(f"  goal for the page: {GOAL_SECONDS:g} s")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code does not depend on the result, since that depends on the machine."""
    parser = argparse.ArgumentParser(prog="bench page", description=__doc__)
    parser.add_argument(
        "--flows", type=int, default=200, metavar="N", help="Number of flows in the ledger (default 200)."
    )
    parser.add_argument(
        "--partitions", type=int, default=100, metavar="N", help="Partitions of each flow (default 100)."
    )
    parser.add_argument("--loads", type=int, default=11, metavar="N", help="Number of page loads (default 11).")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    parser.add_argument("--serve", type=Path, metavar="CONFIG", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.serve is not None:
        return _serve(arguments.serve)
    stories = many(arguments.flows)
    with tempfile.TemporaryDirectory(prefix="mirror-page-") as folder:
        config = write_config(Path(folder), stories)
        seed(config, stories, partitions=arguments.partitions)
        with _serving(config) as url:
            measured = measure(url, arguments.flows, arguments.flows * arguments.partitions, arguments.loads)
    show(Console(width=None if sys.stdout.isatty() else 118), measured)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(measured), indent=2) + "\n")
    return 0


def _serve(config: Path) -> int:
    """Serve the page until standard input ends; the first line of standard output is its address."""
    with served_page(page_app(config, Airflow())) as url:
        print(url, flush=True)
        sys.stdin.read()
    return 0


@contextmanager
def _serving(config: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tools.bench.page", "--serve", str(config)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        if not url:
            raise RuntimeError("the page could not be served: see above")
        yield url
        server.stdin.close()


if __name__ == "__main__":
    sys.exit(main())
