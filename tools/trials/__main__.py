"""`./run trials`: is what an audit says exactly what is wrong with a copy, and nothing else?"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from mirror_lib.errors import MirrorError
from tools.trials.all_trials import KINDS, choose
from tools.trials.campaign import clusters, play_all
from tools.trials.readme import write_example
from tools.trials.report import print_report
from tools.trials.results import TrialResult
from tools.trials.scene import Trial

_WIDTH = 170
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="trials",
        description="Make clean and damaged copies of topics by several replicators, audit each, and compare what the "
        "audit found with what was planted.",
    )
    parser.add_argument("--only", type=_pattern, metavar="REGEX", help="trials whose name or replicator contains it")
    parser.add_argument("--kinds", choices=KINDS, help="only clean copies, or only those with planted faults")
    parser.add_argument("--large", action="store_true", help="also copies of ten million records (minutes)")
    parser.add_argument("--at-once", type=int, choices=range(1, 9), default=2, metavar="N", help="trials at a time (2)")
    parser.add_argument("--list", action="store_true", help="print the names of the trials and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all findings to this file, as JSON")
    parser.add_argument("--readme", action="store_true", help="write the example of README.md, and print it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Play the trials.

    Returns:
        The exit code: 0 if all audits found exactly what is expected, 1 if not, 2 for wrong arguments, 130 after an
        interrupt.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    chosen = choose(kinds=arguments.kinds, only=arguments.only, large=arguments.large)
    if arguments.list:
        for each in chosen:
            console.print(Text(f"{each.by:<14} {each.name}"), soft_wrap=True)
        return 0
    for number in _INTERRUPTS:
        signal.signal(number, _interrupt)
    results: list[TrialResult] = []
    stopped: str | None = None
    exit_code = 1
    try:
        with tempfile.TemporaryDirectory(prefix="mirror-trials-", ignore_cleanup_errors=True) as name:
            if arguments.readme:
                console.print(Text(write_example(Path(name))), soft_wrap=True)
                return 0
            _play(chosen, Path(name), arguments.at_once, results)
    except MirrorError as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped, exit_code = "interrupted; all processes are stopped.", 130
    order = [each.name for each in chosen]
    results.sort(key=lambda each: order.index(each.name))
    print_report(console, results)
    if stopped is not None:
        console.print(Text(f"Ended early: {stopped}", style="bold red"), soft_wrap=True)
    if arguments.json is not None:
        text = json.dumps([each.to_dict() for each in results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    complete = stopped is None and bool(results) and len(results) == len(chosen)
    return 0 if complete and all(each.ok for each in results) else exit_code


def _play(chosen: Sequence[Trial], folder: Path, at_once: int, results: list[TrialResult]) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting two clusters", total=len(chosen))

        def on_result(result: TrialResult) -> None:
            results.append(result)
            wrong = sum(not each.ok for each in results)
            progress.update(task, advance=1, description=f"{wrong} not as expected")
            line = f"{time.monotonic() - began:5.0f} s  {result.verdict}: {result.name} ({result.seconds:.1f} s)"
            progress.console.print(Text(line), soft_wrap=True)
            for text in filter(None, (*result.differences, result.failure)):
                progress.console.print(Text(f"         {text}"), soft_wrap=True)

        with clusters(folder) as pair:
            progress.update(task, description="copying and auditing")
            play_all(chosen, pair, folder, at_once=at_once, on_result=on_result)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from error


def _interrupt(*_: object) -> None:
    # One interrupt is enough: stopping everything takes some seconds, and must not be interrupted.
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
