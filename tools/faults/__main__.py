"""`./run faults`: faults with real processes on this machine, and a table of what they did to the target."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mirror_lib.errors import MirrorError
from tools.faults.campaign import Options, run
from tools.faults.kinds.all_kinds import KINDS, choose
from tools.faults.report import print_report, to_json
from tools.faults.results import Results
from tools.testbed.own_settings import add_own_settings, own_settings
from tools.testbed.record_age import add_record_age

#: Of tables that go to a file or a pipe.
_WIDTH = 130
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="faults",
        description="Replicate between two clusters under constant input, inject faults, and check every record.",
        epilog="kinds of faults:\n" + "".join(f"  {kind.name:<24}{kind.title}\n" for kind in KINDS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--faults", type=_positive, metavar="N", help="Number of faults (default: one of every kind).")
    parser.add_argument("--minutes", type=float, metavar="M", help="Inject faults for this many minutes.")
    parser.add_argument("--seed", type=int, metavar="S", help="Seed of the sequence of faults (default: random).")
    parser.add_argument("--kinds", metavar="A,B", help="Kinds of faults, separated by commas; see below.")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=3, help="Brokers of each cluster (default 3).")
    parser.add_argument(
        "--partitions", type=_positive, metavar="N", help="Partitions of the first input topic (default 4)."
    )
    parser.add_argument(
        "--rate", type=_positive, default=300, metavar="R", help="Input rate in records per second (default 300)."
    )
    add_record_age(parser)
    add_own_settings(parser, "the flow")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all findings to this file, as JSON.")
    parser.add_argument("--keep", action="store_true", help="Keep logs and data in their temporary folder.")
    return parser.parse_args(argv)


def make_options(arguments: argparse.Namespace) -> Options:
    """Return the options of a campaign, from the arguments.

    Raises:
        ValueError: a kind is unknown or does not apply, the time is not above zero, or a property has no value.
    """
    names = [name.strip() for name in (arguments.kinds or "").split(",") if name.strip()]
    kinds = choose(names, brokers=arguments.brokers)
    if arguments.minutes is not None and arguments.minutes <= 0:
        raise ValueError("--minutes must be above 0.")
    faults = arguments.faults
    if faults is None and arguments.minutes is None:
        faults = len(kinds)
    return Options(
        kinds=kinds,
        faults=faults,
        seconds=None if arguments.minutes is None else arguments.minutes * 60,
        seed=secrets.randbelow(10**6) if arguments.seed is None else arguments.seed,
        rate=float(arguments.rate),
        brokers=arguments.brokers,
        partitions=arguments.partitions,
        keep=arguments.keep,
        age_seconds=arguments.record_age,
        settings=own_settings(arguments.set),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a campaign.

    Returns:
        The exit code: 0 if the target holds the source's records once, in order and unchanged; 1 if it does not,
        or the flow did not catch up; 2 for wrong arguments; 130 after an interrupt.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    try:
        options = make_options(arguments)
    except ValueError as error:
        progress.print(str(error), style="red", markup=False)
        return 2
    for number in _INTERRUPTS:
        signal.signal(number, _interrupt)
    results, began = Results(options.seed), time.monotonic()

    def log(text: str) -> None:
        line = Text.assemble((f"{time.monotonic() - began:5.0f} s  ", "dim"), text)
        progress.print(line, highlight=False, soft_wrap=True)

    exit_code = 1
    try:
        log(f"seed {options.seed}")
        run(options, results, log)
        exit_code = 0 if results.clean else 1
    except MirrorError as error:
        results.stopped = " ".join([*(f"{note}:" for note in getattr(error, "__notes__", ())), str(error)])
    except KeyboardInterrupt:
        results.stopped = "interrupted; all processes are stopped."
        exit_code = 130
    print_report(console, results)
    if arguments.json is not None:
        setup = {
            "brokers": options.brokers,
            "partitions": sum(options.topics.values()),
            "rate": options.rate,
            "record_age_seconds": options.age_seconds,
            "settings": dict(options.settings),
            "kinds": [kind.name for kind in options.kinds],
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(to_json(results, setup), indent=2) + "\n", encoding="utf-8")
    return exit_code


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _interrupt(*_: object) -> None:
    # One interrupt is enough: stopping everything takes some seconds, and must not be interrupted.
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
