"""`./run fuzz`: damaged and made-up input for everything that reads what comes from outside."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tools.fuzz.child import case
from tools.fuzz.model import TargetResult
from tools.fuzz.report import keep, print_report
from tools.fuzz.runner import fuzz, share
from tools.fuzz.targets import TARGETS, target_named

_WIDTH = 150
#: Number of parallel processes.
_AT_ONCE = 2
_KEPT_IN = Path(".mirror/fuzz")


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="fuzz",
        description="Damage valid input and make up other, and look that every parser reads it or fails with the error "
        "that it documents, in bounded time and memory.",
    )
    parser.add_argument("--cases", type=_natural, default=10_000, metavar="N", help="over all targets (10000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the same seed makes the same cases (1)")
    known = ", ".join(target.name for target in TARGETS)
    parser.add_argument("--targets", type=_targets, default=None, metavar="A,B", help=f"of {known}")
    parser.add_argument("--only", type=_natural, metavar="CASE", help="run this case of one target, here, and show it")
    parser.add_argument(
        "--keep", type=Path, default=_KEPT_IN, metavar="FOLDER", help=f"for inputs that fail ({_KEPT_IN})"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything found to this file")
    arguments = parser.parse_args(argv)
    if arguments.only is not None and len(arguments.targets or ()) != 1:
        parser.error("--only needs one target")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz.

    Returns:
        The exit code: 0 if nothing failed, 1 if something did, 2 for wrong arguments.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    names = arguments.targets or tuple(target.name for target in TARGETS)
    if arguments.only is not None:
        return _again(names[0], arguments.seed, arguments.only)
    targets = [target_named(name) for name in names]
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def log(text: str) -> None:
        line = Text.assemble((f"{time.monotonic() - began:5.0f} s  ", "dim"), text)
        progress.print(line, highlight=False, soft_wrap=True)

    def one(name: str) -> TargetResult:
        result = fuzz(target_named(name), shares[name], arguments.seed, log)
        log(f"{name}: {result.cases:,} cases, {len(result.failures)} failures, {result.seconds:.0f} s")
        return result

    shares = share(targets, arguments.cases)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(one, names))
    files = keep(results, arguments.keep)
    print_report(console, results, files)
    if arguments.json is not None:
        text = json.dumps([result.to_dict() for result in results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 1 if any(result.failures for result in results) else 0


def _again(name: str, seed: int, number: int) -> int:
    """Run one case in this process, with its traceback."""
    target = target_named(name)
    data = case(target, seed, number)
    sys.stdout.write(f"{data.hex()}\n")
    try:
        sys.stdout.write(f"{target.run(data)}\n")
    except target.errors as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
    return 0


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is no number")
    return int(text)


def _targets(text: str) -> tuple[str, ...]:
    known = [target.name for target in TARGETS]
    named = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not named or not set(named) <= set(known):
        raise argparse.ArgumentTypeError(f"{text} is not some of {', '.join(known)}")
    return named


if __name__ == "__main__":
    sys.exit(main())
