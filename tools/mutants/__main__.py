"""`./run mutants`: make small faults, and count those that the tests notice."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from queue import Queue

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.mutants.checkout import CheckoutError, commit_of, make_checkout, product_differs
from tools.mutants.measure import COMBINED, MeasureError, branches, measure
from tools.mutants.model import Mutant, Outcome, Verdict
from tools.mutants.results import Header, Results, ResultsError, lost, print_table, read, with_equivalents
from tools.mutants.sample import all_mutants, sample
from tools.mutants.seen import ByImports, Seen
from tools.mutants.trial import INTEGRATION, UNIT, Bench, DisturbedError
from tools.mutants.warm import WarmBrokers

_ROOT = Path(__file__).resolve().parents[2]
_STATE = Path(".mirror/mutants")
_WIDTH = 150
#: As `./run test` runs them.
_OPTIONS = {
    UNIT: ("-n", "2"),
    INTEGRATION: ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
}


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="mutants",
        description="Make small faults in the packages that must never be wrong, one at a time, and run the tests that "
        "execute the changed lines: unit tests, then integration tests. The first run measures which those are.",
    )
    parser.add_argument("--sample", type=int, default=320, metavar="N", help="number of mutants (320)")
    parser.add_argument("--seed", default="1", metavar="TEXT", help="the same seed makes the same mutants (1)")
    parser.add_argument("--product", default="HEAD", metavar="REV", help="commit of the product code (HEAD)")
    parser.add_argument("--tests", default=None, metavar="REV", help="commit of the tests (that of the product)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="results, to continue or to compare with later")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="mutants whose name contains it")
    parser.add_argument("--names", type=Path, metavar="FILE", help="judge the mutants of another results file")
    parser.add_argument("--unit", action="store_true", help="without integration tests")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure integration tests, too (an hour); else they are found by their imports",
    )
    parser.add_argument("--coverage", action="store_true", help="measure and print branch coverage by package only")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="name what is lost")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="mutants at a time (2)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Judge a sample.

    Returns:
        The exit code: 0 if no mutant survives, 1 if one does, 2 if nothing could be judged.
    """
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    # Brokers and tests end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if arguments.compare:
            return _compare(console, *arguments.compare)
        return _judge(console, arguments)
    except (CheckoutError, MeasureError, ResultsError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


def _compare(console: Console, before: Path, after: Path) -> int:
    missing = lost(read(before)[1], read(after)[1])
    for each, now in missing:
        outcome = "was not judged" if now is None else now.outcome.value
        console.print(
            f"lost: {each.name}: killed by {each.by} before, {outcome} after", highlight=False, soft_wrap=True
        )
    console.print(f"{len(missing)} mutants that were killed before are not killed after")
    return 1 if missing else 0


def _judge(console: Console, arguments: argparse.Namespace) -> int:
    product = commit_of(_ROOT, arguments.product)
    tests = commit_of(_ROOT, arguments.tests or arguments.product)
    if arguments.product == "HEAD" and product_differs(_ROOT):
        raise CheckoutError("product code differs from HEAD: commit it first, mutants are made in commits")
    first = _STATE.absolute() / "checkouts" / "1"
    make_checkout(_ROOT, first, product, tests)
    tiers = (UNIT,) if arguments.unit else (UNIT, INTEGRATION)
    data = {tier: _STATE.absolute() / "measured" / f"{product[:12]}-{tests[:12]}" / tier for tier in tiers}
    for tier, folder in data.items():
        if tier == UNIT or arguments.measure or arguments.coverage:
            measure(first, folder, (f"tests/{tier}",), _OPTIONS[tier])
    if arguments.coverage:
        for package, (executed, existing) in branches(first, *data.values()).items():
            console.print(f"{package:<32}{executed:>7} of {existing:>6} branches  {_percent(executed, existing)}")
        return 0
    chosen = _chosen(first, arguments)
    file = arguments.results or _STATE / "results" / f"{product[:12]}-{tests[:12]}-{arguments.seed}-{len(chosen)}.jsonl"
    results = Results(file, Header(product, tests, arguments.seed, len(chosen)))
    # A mutant that unit tests do not notice is judged by integration tests alone, later.
    waiting = {mutant: tiers for mutant in chosen if results.outcome_of(mutant) is None}
    if INTEGRATION in tiers:
        waiting |= {mutant: (INTEGRATION,) for mutant in chosen if results.outcome_of(mutant) is Outcome.UNIT_ONLY}
    measured = {tier: folder for tier, folder in data.items() if (folder / COMBINED).is_file()}
    seen = {
        tier: Seen.read(measured[tier]) if tier in measured else ByImports(first, tier) for tier in (UNIT, INTEGRATION)
    }
    with ExitStack() as stack:
        benches = []
        for number in range(1, arguments.workers + 1):
            folder = first.with_name(str(number))
            make_checkout(_ROOT, folder, product, tests)
            brokers = stack.enter_context(WarmBrokers(_STATE.absolute() / "brokers" / str(number)))
            benches.append(Bench(folder, seen[UNIT], seen[INTEGRATION], brokers))
        _run(results, waiting, benches)
    verdicts = with_equivalents(results.verdicts)
    unjudged = [mutant for mutant in chosen if results.outcome_of(mutant) is None]
    print_table(console, verdicts)
    console.print(f"results: {file}", highlight=False)
    if unjudged:
        raise MeasureError(f"{len(unjudged)} mutants could not be judged, see above: run the same command again")
    return 1 if any(not each.outcome.is_killed for each in verdicts) else 0


def _chosen(root: Path, arguments: argparse.Namespace) -> list[Mutant]:
    by_group = all_mutants(root)
    if arguments.names:
        wanted = {each.name for each in read(arguments.names)[1]}
        return [mutant for group in by_group.values() for mutant in group if mutant.name in wanted]
    if arguments.only:
        everything = [mutant for group in by_group.values() for mutant in group]
        return [mutant for mutant in everything if any(text in mutant.name for text in arguments.only)]
    return sample(by_group, arguments.sample, arguments.seed)


def _run(results: Results, waiting: Mapping[Mutant, Collection[str]], benches: Sequence[Bench]) -> None:
    free: Queue[Bench] = Queue()
    for bench in benches:
        free.put(bench)

    def judge(mutant: Mutant) -> Verdict | None:
        bench = free.get()
        try:
            return bench.judge(mutant, waiting[mutant])
        except DisturbedError as error:
            print(f"mutants: not judged: {mutant.name}: {error}", file=sys.stderr)
            return None
        finally:
            free.put(bench)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress, ThreadPoolExecutor(len(benches)) as pool:
        task = progress.add_task("mutants", total=len(waiting))
        try:
            for judged in as_completed([pool.submit(judge, mutant) for mutant in waiting]):
                verdict = judged.result()
                if verdict is not None:
                    results.add(verdict)
                progress.advance(task)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for bench in benches:
                bench.end()
            raise


def _percent(executed: int, existing: int) -> str:
    return f"{100 * executed / existing:.1f} %" if existing else ""


if __name__ == "__main__":
    sys.exit(main())
