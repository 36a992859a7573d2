"""`./run bench`: compare this project's copy with MirrorMaker 2 on this machine."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.jars import KAFKA_VERSION
from tools.bench.comparison.measure import WARM_UP_COPIES, Options, run
from tools.bench.comparison.report import print_report, to_json
from tools.bench.copiers.settings import Copier
from tools.bench.interrupt import interrupt
from tools.bench.machine.description import describe, java_version
from tools.bench.workloads.workload import EXTRA_WORKLOADS, WORKLOADS, select
from tools.testbed.own_settings import add_own_settings, own_settings
from tools.testbed.record_age import add_record_age

#: Of tables that go to a file or a pipe.
_WIDTH = 118
#: Name for the limit, next to the copiers.
_LIMIT = "limit"
_MEASURED = (*Copier, _LIMIT)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    known = ", ".join(workload.name for workload in (*WORKLOADS, *EXTRA_WORKLOADS))
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Copy the same records with MirrorMaker 2 (default and tuned), with a loop around two clients and "
        "with this project, and compare these with one another and with the limit.",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="Run two small workloads with MM2 default only, without warm-up: about a minute.",
    )
    parser.add_argument("--workloads", help=f"Names to run, separated by commas: {known}.")
    parser.add_argument("--tls", action="store_true", help="Copy each workload over TLS, too.")
    parser.add_argument("--copiers", help=f"Copiers to run: {', '.join(_MEASURED)}.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    parser.add_argument(
        "--repeat", type=_positive, default=1, metavar="N", help="Number of rounds; medians are compared."
    )
    parser.add_argument(
        "--partitions", type=_positive, default=8, metavar="N", help="Partitions of each topic (default 8)."
    )
    parser.add_argument(
        "--processes", type=_positive, default=2, metavar="N", help="tasks.max of every copier (default 2)."
    )
    parser.add_argument(
        "--warm-up",
        type=_positive,
        default=WARM_UP_COPIES,
        metavar="N",
        help=f"Maximum number of copies before the first measured copy (default {WARM_UP_COPIES}).",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="F", help="Multiply the number of records by this factor."
    )
    add_record_age(parser)
    add_own_settings(parser)
    parser.add_argument("--keep", action="store_true", help="Keep logs and data in their temporary folder.")
    return parser.parse_args(argv)


def make_options(arguments: argparse.Namespace) -> Options:
    """Return what to compare, from the arguments.

    Raises:
        ValueError: a workload or copier is unknown, the scale is not above zero, or a property has no value.
    """
    workloads = select(arguments.workloads, quick=arguments.quick)
    if arguments.scale <= 0:
        raise ValueError("--scale must be above 0.")
    if arguments.scale != 1.0:
        workloads = tuple(each.scaled(max(round(each.records * arguments.scale), 1)) for each in workloads)
    workloads = tuple(each.aged(arguments.record_age) for each in workloads)
    if arguments.tls:
        workloads = tuple(each for workload in workloads for each in (workload, workload.over_tls()))
    names = [name.strip() for name in (arguments.copiers or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in _MEASURED]
    if unknown:
        raise ValueError(f"no such copier: {', '.join(unknown)}. Known: {', '.join(_MEASURED)}.")
    return Options(
        workloads=workloads,
        copiers=_copiers(names, quick=arguments.quick),
        # For copies of a few milliseconds the limit is meaningless.
        limit=_LIMIT in names if names else not arguments.quick,
        partitions=arguments.partitions,
        processes=arguments.processes,
        rounds=arguments.repeat,
        warm_up=not arguments.quick,
        warm_up_copies=arguments.warm_up,
        keep=arguments.keep,
        settings=own_settings(arguments.set),
    )


def _copiers(names: Sequence[str], *, quick: bool) -> tuple[Copier, ...] | None:
    """Return the named copiers; None if none is named."""
    if names:
        return tuple(copier for copier in Copier if copier in names)
    # Each start of MM2 takes longer than a small copy.
    return (Copier.MM2_DEFAULT, Copier.MIRROR) if quick else None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison.

    Returns:
        The exit code: 0 if every copy equals its source, 1 if one does not or could not be made, 2 for wrong
        arguments. Missed goals do not fail it: they depend on the machine.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    try:
        options = make_options(arguments)
    except ValueError as error:
        progress.print(str(error), style="red")
        return 2
    signal.signal(signal.SIGTERM, interrupt)
    began = time.monotonic()

    def log(text: str) -> None:
        progress.print(f"[dim]{time.monotonic() - began:5.0f} s[/]  {text}", highlight=False)

    try:
        machine = describe(java=java_version(), kafka=KAFKA_VERSION)
        results = run(options, log)
    except MirrorError as error:
        progress.print(str(error), style="red", markup=False)
        return error.exit_code
    except KeyboardInterrupt:
        progress.print("interrupted; all processes are stopped")
        return 130
    setup: dict[str, int | str] = {
        "partitions": options.partitions,
        "processes": options.processes,
        "rounds": options.rounds,
    }
    if options.settings:
        setup["settings"] = ", ".join(f"{key}={value}" for key, value in options.settings.items())
    print_report(console, results, machine, setup)
    if arguments.json is not None:
        text = json.dumps(to_json(results, machine, setup), indent=2)
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(each.complete for each in results.measurements) else 1


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


if __name__ == "__main__":
    sys.exit(main())
