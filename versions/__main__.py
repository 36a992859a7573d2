"""`python -m versions`: the whole flow between brokers of different versions, and a table of what works."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mirror_lib.errors import MirrorError
from versions.clusters import RELEASES, SOURCES, TARGETS
from versions.matrix import run
from versions.report import print_report
from versions.results import PairResult

_WIDTH = 150


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="versions",
        description="Replicate between real brokers of different versions of Kafka: topics, records, configs, ACLs, "
        "groups and heartbeats.",
    )
    known = ", ".join(RELEASES)
    parser.add_argument(
        "--sources",
        type=_versions,
        default=SOURCES,
        metavar="A,B",
        help=f"Kafka versions, separated by commas: {known}.",
    )
    parser.add_argument(
        "--targets",
        type=_versions,
        default=TARGETS,
        metavar="A,B",
        help=f"Kafka versions, separated by commas: {known}.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all findings to this file, as JSON.")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Test all pairs.

    Returns:
        The exit code: 0 if everything works between all of them, 1 if not, 2 for wrong arguments.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def tell(text: str) -> None:
        line = Text.assemble((f"{time.monotonic() - began:5.0f} s  ", "dim"), text)
        progress.print(line, highlight=False, soft_wrap=True)

    results: list[PairResult] = []
    stopped: str | None = None
    try:
        with tempfile.TemporaryDirectory(prefix="mirror-versions-") as folder:
            run(arguments.sources, arguments.targets, Path(folder), results, tell)
    except MirrorError as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "interrupted; all processes are stopped."
    print_report(console, results)
    if stopped is not None:
        console.print(Text(f"Ended early: {stopped}", style="bold red"), soft_wrap=True)
    if arguments.json is not None:
        text = json.dumps([result.to_dict() for result in results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    complete = len(results) == len(arguments.sources) * len(arguments.targets)
    return 0 if stopped is None and complete and all(result.ok for result in results) else 1


def _versions(text: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not named or not set(named) <= set(RELEASES):
        raise argparse.ArgumentTypeError(f"{text} contains names other than {', '.join(RELEASES)}")
    return named


if __name__ == "__main__":
    sys.exit(main())
