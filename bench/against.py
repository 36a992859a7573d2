"""`python -m bench.against CHECKOUT`: is the copy of this checkout slower than that of another one of this project?

Both copy the same records between the same two brokers in turn, each time in a process of its own, so that whatever the
machine does meets both alike. Ratios above 1 mean that this checkout is slower.
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
from pathlib import Path

from bench.errors import BenchError
from bench.loading import load
from bench.pair import Pair, started_pair
from bench.settings import Copier, CopySetup, properties, render
from bench.workloads import Workload, select
from mirror_lib.errors import MirrorError

_WORKLOADS = "1kb-lz4,1kb-none,100b-lz4,200b-single,200b-five"
_PARTITIONS = 8
_HERE = Path(__file__).resolve().parents[1]
_MEASURES = ("user", "system", "seconds")
#: The first round of each warms the brokers up.
_WARM_UP = 1

Spent = Mapping[str, float]


class _Sides:
    """Copies by either checkout, each to a new topic."""

    def __init__(self, pair: Pair, folder: Path, other: Path) -> None:
        self._pair, self._folder = pair, folder
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
        )
        path = self._folder / f"{self._copies}.properties"
        path.write_text(render(properties(setup)))
        checkout = self._checkouts[side]
        done = subprocess.run(
            [str(checkout / ".venv" / "bin" / "python"), str(_HERE / "bench" / "one_copy.py"), str(path), setup.flow],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"the copy of {checkout} failed: {done.stderr[-500:]}")
        spent: Spent = json.loads(done.stdout.splitlines()[-1])
        return spent


def compare(pair: Pair, folder: Path, other: Path, workload: Workload, rounds: int) -> dict[str, float]:
    """The median of the ratios this / other of all rounds, by what was measured."""
    pair.source.create(workload.name, _PARTITIONS)
    load(pair.source.bootstrap_servers, workload, _PARTITIONS)
    sides = _Sides(pair, folder, other)
    ratios: dict[str, list[float]] = {name: [] for name in _MEASURES}
    for number in range(_WARM_UP + rounds):
        order = ("this", "other") if number % 2 else ("other", "this")
        spent = {side: sides.copy(side, workload) for side in order}
        if number >= _WARM_UP:
            for name in _MEASURES:
                ratios[name].append(spent["this"][name] / max(spent["other"][name], 1e-6))
    return {name: round(statistics.median(found), 3) for name, found in ratios.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench against", description=__doc__)
    parser.add_argument("checkout", type=Path, help="another checkout, set up by its own `./run setup`")
    parser.add_argument("--workloads", default=_WORKLOADS, help="which ones, with commas between")
    parser.add_argument("--rounds", type=int, default=8, help="of each workload (default 8)")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    chosen = parser.parse_args(argv)
    found: dict[str, dict[str, float]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="mirror-against-") as name, started_pair(Path(name)) as pair:
            for workload in select(chosen.workloads, quick=False):
                ratios = compare(pair, Path(name), chosen.checkout.resolve(), workload, chosen.rounds)
                found[workload.name] = ratios
                told = ", ".join(f"{measure} {ratio:.2f}" for measure, ratio in ratios.items())
                sys.stdout.write(f"{workload.name}: this / other: {told}\n")
                sys.stdout.flush()
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
