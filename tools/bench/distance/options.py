"""The options of a bench over a distance, and its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from tools.bench.copiers.settings import Copier
from tools.bench.distance.model import Case
from tools.bench.workloads.workload import Workload, select
from tools.testbed.own_settings import add_own_settings, own_settings
from tools.testbed.record_age import add_record_age
from tools.testbed.wan_direction import LineQuality

_COPIERS = (Copier.MIRROR, Copier.MM2_DEFAULT, Copier.MM2_TUNED)
Named = TypeVar("Named", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured.

    Args:
        quality: of the line; cases without loss ignore its loss.
        lossy_seconds: a lossy line may be too slow: its cases copy what it transmits in this many seconds.
        settings: further properties of this project's flow.
        warm_up: a local copy first that is not measured.
    """

    workload: Workload
    quality: LineQuality
    cases: tuple[Case, ...] = tuple(Case)
    copiers: tuple[Copier, ...] = (Copier.MIRROR,)
    rounds: int = 1
    partitions: int = 8
    processes: int = 2
    lossy_seconds: float = 60.0
    settings: Mapping[str, str] = field(default_factory=dict)
    warm_up: bool = True


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    cases, copiers = ", ".join(case.value for case in Case), ", ".join(_COPIERS)
    parser = argparse.ArgumentParser(prog="bench distance", description="A copy next door, and over a long line.")
    parser.add_argument("--workload", default="1kb-none", help="Workload to run (1kb-none).")
    parser.add_argument(
        "--records", type=int, default=2_000_000, metavar="N", help="Records of the workload (2000000)."
    )
    parser.add_argument(
        "--round-trip-ms", type=float, default=150.0, metavar="F", help="Round-trip time of the line in ms (150)."
    )
    parser.add_argument(
        "--loss", type=float, default=0.01, metavar="F", help="Share of TCP segments that are lost (0.01); 0: none."
    )
    parser.add_argument(
        "--window-bytes",
        type=int,
        default=6_000_000,
        metavar="N",
        help="Window of a connection in bytes: the smaller socket buffer of both ends (6000000); 0: no limit.",
    )
    parser.add_argument(
        "--bytes-per-second",
        type=float,
        default=0.0,
        metavar="F",
        help="Bandwidth of the line in bytes per second; 0: no limit (0).",
    )
    parser.add_argument("--cases", default="", help=f"Cases to run, separated by commas: {cases}.")
    parser.add_argument(
        "--copiers", default=Copier.MIRROR, help=f"Copiers to run, separated by commas: {copiers} (mirror)."
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="Number of rounds (1).")
    parser.add_argument("--partitions", type=int, default=8, metavar="N", help="Partitions of the topic (8).")
    parser.add_argument(
        "--processes", type=int, default=2, metavar="N", help="Copy processes; tasks.max of all copiers (2)."
    )
    parser.add_argument(
        "--lossy-seconds",
        type=float,
        default=60.0,
        metavar="F",
        help="With loss, copy as much as the line can carry in this many seconds (60).",
    )
    add_record_age(parser)
    add_own_settings(parser)
    parser.add_argument("--no-warm-up", action="store_true", help="Measure the first copy, too.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    return parser.parse_args(argv)


def make_options(chosen: argparse.Namespace) -> Options:
    """Return what to measure, from the arguments.

    Raises:
        ValueError: a workload, case or copier is unknown, or a property has no value.
    """
    workloads = select(chosen.workload, quick=False)
    if len(workloads) != 1:
        raise ValueError("choose one workload.")
    quality = LineQuality(chosen.round_trip_ms / 1000, chosen.loss, chosen.bytes_per_second, chosen.window_bytes)
    cases = _named(chosen.cases.split(","), {case.value: case for case in Case}, "case") or tuple(Case)
    copiers = _named(chosen.copiers.split(","), {copier.value: copier for copier in _COPIERS}, "copier")
    return Options(
        workload=workloads[0].scaled(chosen.records).aged(chosen.record_age),
        quality=quality,
        cases=tuple(case for case in cases if quality.loss or not case.lossy),
        copiers=copiers or (Copier.MIRROR,),
        rounds=chosen.repeat,
        partitions=chosen.partitions,
        processes=chosen.processes,
        lossy_seconds=chosen.lossy_seconds,
        settings=own_settings(chosen.set),
        warm_up=not chosen.no_warm_up,
    )


def _named(names: Sequence[str], known: Mapping[str, Named], what: str) -> tuple[Named, ...]:
    wanted = [name.strip() for name in names if name.strip()]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"no such {what}: {', '.join(unknown)}. Known: {', '.join(known)}.")
    return tuple(known[name] for name in wanted)
