"""`./run bench against CHECKOUT`: is the copy of this checkout slower than that of another one of this project?

Both copy the same records between the same two brokers in turn, each time in a process of its own, so that whatever the
machine does meets both alike. Ratios above 1 mean that this checkout is slower. CPU seconds are the copier's own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mirror_lib.errors import MirrorError
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.copiers.settings import Copier, CopySetup, properties, render
from tools.bench.errors import BenchError
from tools.bench.workloads.loading import load
from tools.bench.workloads.workload import Workload, select
from tools.testbed.own_settings import add_own_settings, own_settings
from tools.testbed.record_age import add_record_age

_WORKLOADS = "1kb-lz4,1kb-none,100b-lz4,200b-single,200b-five"
_PARTITIONS = 8
_HERE = Path(__file__).resolve().parents[2]
_MEASURES = ("cpu", "user", "system", "seconds")
#: The first round of each warms the brokers up.
_WARM_UP = 1

Spent = Mapping[str, float]


class _Sides:
    """Copies by either checkout, each to a new topic."""

    def __init__(self, pair: Pair, folder: Path, other: Path, own: Mapping[str, str]) -> None:
        self._pair, self._folder, self._own = pair, folder, own
        self._checkouts = {"this": _HERE, "other": other}
        self._copies = 0

    def copy(self, side: str, workload: Workload) -> Spent:
        self._copies += 1
        setup = CopySetup(
            copier=Copier.MIRROR,
            round=self._copies,
            topic=workload.name,
            source_bootstrap=self._pair.source.bootstrap_servers,
            target_bootstrap=self._pair.target.bootstrap_servers,
            tasks=1,
            own=self._own if side == "this" else {},
        )
        path = self._folder / f"{self._copies}.properties"
        path.write_text(render(properties(setup)))
        checkout = self._checkouts[side]
        done = subprocess.run(
            [
                str(checkout / ".venv" / "bin" / "python"),
                str(_one_copy(checkout)),
                str(path),
                setup.flow,
            ],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"the copy of {checkout} failed: {done.stderr[-500:]}")
        spent: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return {**spent, "cpu": spent["user"] + spent["system"]}


def _one_copy(checkout: Path) -> Path:
    """Return the program for one copy; older checkouts have it in the folder `bench`."""
    now, before = (checkout / folder / "one_copy.py" for folder in ("tools/bench", "bench"))
    return now if now.is_file() else before


@dataclass(frozen=True, slots=True)
class Ratio:
    """This checkout / the other one over all rounds: median, lowest and highest; and the medians of both."""

    median: float
    low: float
    high: float
    #: Of the lowest values of both, which other load on the machine affects least.
    of_lowest: float
    this_seconds: float
    other_seconds: float

    def __str__(self) -> str:
        spread = f"{self.low:.2f} to {self.high:.2f}; lowest {self.of_lowest:.3f}; {self.this_seconds:.2f} s"
        return f"{self.median:.3f} ({spread})"


def ratios(rounds: Sequence[tuple[Spent, Spent]]) -> dict[str, Ratio]:
    """Return the result of the rounds, by measure.

    Args:
        rounds: costs of this checkout, and of the other.
    """
    found = {}
    for name in _MEASURES:
        this, other = ([spent[name] for spent in side] for side in zip(*rounds, strict=True))
        each = [one / max(another, 1e-6) for one, another in zip(this, other, strict=True)]
        found[name] = Ratio(
            median=round(statistics.median(each), 3),
            low=round(min(each), 3),
            high=round(max(each), 3),
            of_lowest=round(min(this) / max(min(other), 1e-6), 3),
            this_seconds=round(statistics.median(this), 3),
            other_seconds=round(statistics.median(other), 3),
        )
    return found


def compare(
    pair: Pair, folder: Path, other: Path, workload: Workload, rounds: int, own: Mapping[str, str]
) -> dict[str, Ratio]:
    """Copy by both checkouts in each round; return the ratios by measure."""
    pair.source.create(workload.name, _PARTITIONS)
    load(pair.source.bootstrap_servers, workload, _PARTITIONS)
    sides = _Sides(pair, folder, other, own)
    spent = []
    for number in range(_WARM_UP + rounds):
        order = ("this", "other") if number % 2 else ("other", "this")
        by_side = {side: sides.copy(side, workload) for side in order}
        spent.append((by_side["this"], by_side["other"]))
    return ratios(spent[_WARM_UP:])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench against", description=__doc__)
    parser.add_argument("checkout", type=Path, help="Other checkout, prepared with its own `./run setup`.")
    parser.add_argument("--workloads", default=_WORKLOADS, help="Workloads to run, separated by commas.")
    parser.add_argument("--rounds", type=int, default=8, help="Rounds of each workload (default 8).")
    parser.add_argument("--json", type=Path, help="Write all measurements to this file, as JSON.")
    add_record_age(parser)
    add_own_settings(parser, "this checkout's flow alone")
    chosen = parser.parse_args(argv)
    try:
        workloads = [each.aged(chosen.record_age) for each in select(chosen.workloads, quick=False)]
        own = own_settings(chosen.set)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found: dict[str, dict[str, Ratio]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="mirror-against-") as name, started_pair(Path(name)) as pair:
            for workload in workloads:
                came = compare(pair, Path(name), chosen.checkout.resolve(), workload, chosen.rounds, own)
                found[workload.name] = came
                ratio_texts = ", ".join(f"{measure} {ratio}" for measure, ratio in came.items())
                sys.stdout.write(f"{workload.title}: this / other: {ratio_texts}\n")
                sys.stdout.flush()
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if chosen.json is not None:
        plain = {name: {measure: asdict(ratio) for measure, ratio in each.items()} for name, each in found.items()}
        chosen.json.write_text(json.dumps(plain, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
