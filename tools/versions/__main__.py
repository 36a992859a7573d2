"""`./run versions`: the whole flow between brokers of different versions, and a table of what works."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.text import Text

from mirror_lib.errors import MirrorError
from tools.versions import airflow, markers, spark, two_topics
from tools.versions.clusters import KFAKE, RELEASES, SOURCES, TARGETS
from tools.versions.matrix import run
from tools.versions.report import print_report
from tools.versions.results import PairResult
from tools.versions.spark_functions import write_functions

_WIDTH = 150
_NEWEST = SOURCES[-1]


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="versions",
        description="Replicate between real brokers of different versions of Kafka: topics, records, configs, ACLs, "
        "groups and heartbeats.",
    )
    known = ", ".join((*RELEASES, KFAKE))
    one_of = f"Kafka versions, separated by commas: {known}."
    parser.add_argument("--sources", type=_versions, metavar="A,B", help=one_of)
    parser.add_argument("--targets", type=_versions, metavar="A,B", help=one_of)
    parser.add_argument(
        "--brokers",
        choices=(KFAKE,),
        help="Other brokers as source and as target, with Kafka on the other side: kfake of franz-go (needs Go).",
    )
    parser.add_argument(
        "--spark",
        type=_sparks,
        metavar="A,B",
        help=f"Run a copy and a transform with these versions of Spark instead: {', '.join(spark.SPARKS)}, or all. "
        "Makes an environment for each in the state folder.",
    )
    parser.add_argument(
        "--airflow",
        type=_airflows,
        metavar="A,B",
        help=f"Run the flow DAG in these versions of Airflow instead: {', '.join(airflow.AIRFLOWS)}, or all. Makes an "
        "environment for each in the state folder.",
    )
    parser.add_argument(
        "--spark-functions",
        type=_sparks,
        metavar="A,B",
        help="Write the names of all SQL functions of these versions of Spark, or of all, into the data that a test "
        "compares with the functions that transforms may call, instead of a test.",
    )
    parser.add_argument(
        "--markers",
        type=int,
        metavar="N",
        help="Copy this many transactions in one partition with mirror.offsets=same to the targets instead: 40000 are "
        "more than a producer id has epochs. Takes minutes for each target.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all findings to this file, as JSON.")
    arguments = parser.parse_args(argv)
    other = (arguments.brokers, _NEWEST) if arguments.brokers else None
    arguments.sources = arguments.sources or other or SOURCES
    arguments.targets = arguments.targets or other or TARGETS
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Test all pairs.

    Returns:
        The exit code: 0 if everything works between all of them, 1 if not, 2 for wrong arguments.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def log(text: str) -> None:
        line = Text.assemble((f"{time.monotonic() - began:5.0f} s  ", "dim"), text)
        progress.print(line, highlight=False, soft_wrap=True)

    # As Ctrl-C: brokers lead their own sessions, and would outlive this process.
    signal.signal(signal.SIGTERM, _interrupt)
    if arguments.spark_functions:
        with tempfile.TemporaryDirectory(prefix="mirror-versions-") as folder:
            try:
                write_functions(arguments.spark_functions, Path(folder), log)
            except MirrorError as error:
                console.print(Text(f"Ended early: {error}", style="bold red"), soft_wrap=True)
                return 1
        return 0
    results: list[PairResult] = []
    by_version: list[two_topics.FlowResult] = []
    by_target: list[markers.MarkersResult] = []
    stopped: str | None = None
    try:
        with tempfile.TemporaryDirectory(prefix="mirror-versions-") as folder:
            if arguments.spark:
                spark.run(arguments.spark, Path(folder), by_version, log)
            elif arguments.airflow:
                airflow.run(arguments.airflow, Path(folder), by_version, log)
            elif arguments.markers:
                markers.run(arguments.targets, arguments.markers, Path(folder), by_target, log)
            else:
                run(arguments.sources, arguments.targets, Path(folder), results, log)
    except MirrorError as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "interrupted; all processes are stopped."
    chosen = arguments.spark or arguments.airflow
    if arguments.markers:
        markers.print_report(console, by_target)
    elif chosen:
        two_topics.print_report(console, spark.TITLE if arguments.spark else airflow.TITLE, by_version)
    else:
        print_report(console, results)
    if stopped is not None:
        console.print(Text(f"Ended early: {stopped}", style="bold red"), soft_wrap=True)
    all_results: Sequence[PairResult | two_topics.FlowResult | markers.MarkersResult]
    all_results = by_target or by_version or results
    if arguments.json is not None:
        text = json.dumps([result.to_dict() for result in all_results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    wanted = len(chosen or ()) or len(arguments.targets) * (1 if arguments.markers else len(arguments.sources))
    complete = len(all_results) == wanted
    return 0 if stopped is None and complete and all(result.ok for result in all_results) else 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _sparks(text: str) -> tuple[str, ...]:
    return _some_of(text, spark.SPARKS)


def _airflows(text: str) -> tuple[str, ...]:
    return _some_of(text, airflow.AIRFLOWS)


def _some_of(text: str, known: Collection[str]) -> tuple[str, ...]:
    named = tuple(known) if text == "all" else tuple(dict.fromkeys(text.split(",")))
    if not set(named) <= set(known):
        raise argparse.ArgumentTypeError(f"{text} is not some of {', '.join(known)}, or all")
    return named


def _versions(text: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    known = (*RELEASES, KFAKE)
    if not named or not set(named) <= set(known):
        raise argparse.ArgumentTypeError(f"{text} contains names other than {', '.join(known)}")
    return named


if __name__ == "__main__":
    sys.exit(main())
