"""`./run security`: the whole flow by every way to log in, and a table of what works."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mirror_lib.errors import MirrorError
from tests.support.security.kerberos_client import KerberosClientError
from tools.security.matrix import SPARK_WAY, run
from tools.security.report import print_report
from tools.security.results import WayResult
from tools.security.ways import WAYS, Way

_WIDTH = 150
_SPARK: Mapping[str, Collection[Way]] = {"all": WAYS, "one": (SPARK_WAY,), "none": ()}


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="security",
        description="Replicate between real brokers by every way to log in that Kafka has: TLS, client certificates, "
        "and each mechanism of SASL.",
    )
    parser.add_argument(
        "--mechanisms",
        type=_ways,
        default=WAYS,
        metavar="A,B",
        help=f"Mechanisms to run, separated by commas: {', '.join(_by_mechanism())}.",
    )
    parser.add_argument(
        "--spark",
        choices=tuple(_SPARK),
        default="all",
        help="Mechanisms with which a Spark job copies instead of this process: all (default), one, none.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all findings to this file, as JSON.")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Test all login mechanisms.

    Returns:
        The exit code: 0 if everything works with all of them, 1 if not, 2 for wrong arguments.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def log(text: str) -> None:
        line = Text.assemble((f"{time.monotonic() - began:5.0f} s  ", "dim"), text)
        progress.print(line, highlight=False, soft_wrap=True)

    results: list[WayResult] = []
    stopped: str | None = None
    try:
        with tempfile.TemporaryDirectory(prefix="mirror-security-") as folder:
            run(arguments.mechanisms, Path(folder), results, log, by_spark=_SPARK[arguments.spark])
    except (MirrorError, KerberosClientError) as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "interrupted; all processes are stopped."
    print_report(console, results)
    if stopped is not None:
        console.print(Text(f"Ended early: {stopped}", style="bold red"), soft_wrap=True)
    if arguments.json is not None:
        text = json.dumps([result.to_dict() for result in results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    complete = len(results) == len(arguments.mechanisms)
    return 0 if stopped is None and complete and all(result.ok for result in results) else 1


def _by_mechanism() -> dict[str, list[Way]]:
    found: dict[str, list[Way]] = {}
    for way in WAYS:
        found.setdefault(way.mechanism or ("MUTUAL" if way.client_certificate else "SSL"), []).append(way)
    return found


def _ways(text: str) -> tuple[Way, ...]:
    known = _by_mechanism()
    named = list(dict.fromkeys(part.strip().upper() for part in text.split(",") if part.strip()))
    if not named or not set(named) <= set(known):
        raise argparse.ArgumentTypeError(f"{text} contains names other than {', '.join(known)}")
    return tuple(way for name in named for way in known[name])


if __name__ == "__main__":
    sys.exit(main())
