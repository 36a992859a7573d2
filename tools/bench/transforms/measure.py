"""`./run bench transforms`: copies through transforms, against MirrorMaker 2 with an equivalent chain of its own.

JSON records of which a third is filtered and the others are masked: by Spark SQL in this project, by a transform in
Java, compiled here, in MM2. And a transform that changes nothing, against tuned MM2 that has none.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mirror_lib.features.demo.jars import KAFKA_VERSION
from mirror_lib.features.demo.spark_connect import CONNECT_SETTINGS
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.comparison.measure import order
from tools.bench.comparison.report import goal_table, warn_if_busy
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import CopySetup
from tools.bench.interrupt import exit_code
from tools.bench.limit.measure import measure_limit
from tools.bench.machine.description import describe, java_version
from tools.bench.transforms.cases import CASE_NAMES, FILTER_AND_MASK, Case, Contender, Outcome, select_cases
from tools.bench.transforms.check import Kept, all_kept, kept_by_filter
from tools.bench.transforms.copies import Copy, measure_mirror, measure_mm2, practise
from tools.bench.transforms.java_transform import has_compiler, jars_with_transform
from tools.bench.transforms.results import Result, Results, cpu_table, goals, speed_table, to_plain, wrong_copies
from tools.bench.workloads.loading import load

_WIDTH = 130
_RECORDS, _QUICK_RECORDS = 500_000, 20_000
#: Of each partition, for runs before a measurement that keep the session's workers alive.
_PRACTICE_RECORDS = 500
_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
#: Of a long-lived session, like those of a Spark Connect server.
SESSION_SETTINGS: Mapping[str, str] = {_JAVA_OPTIONS: CONNECT_SETTINGS[_JAVA_OPTIONS]}
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured.

    Attributes:
        contenders: of each case; None for all of the case.
        warm_up: fill the page cache, and warm up brokers and session before the first copy.
    """

    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...] | None = None
    rounds: int = 1
    partitions: int = 8
    processes: int = 2
    warm_up: bool = True

    def contenders_of(self, case: Case) -> tuple[Contender, ...]:
        """Return the contenders of a case."""
        return tuple(each for each in case.contenders if self.contenders is None or each in self.contenders)


def run(options: Options, pair: Pair, host: RelayHost, folder: Path, log: Log) -> Results:
    """Measure the selected cases.

    Raises:
        BenchError: a copy failed.
    """
    return _Bench(options, pair, host, folder, log).run()


@dataclass
class _Bench:
    options: Options
    pair: Pair
    host: RelayHost
    folder: Path
    log: Log
    _measured: list[Result] = field(default_factory=list)
    _copies: int = 0
    _jars: Path | None = None

    def run(self) -> Results:
        for number, case in enumerate(self.options.cases):
            kept, practice = self._load(case)
            contenders = self.options.contenders_of(case)
            for turn in range(self.options.rounds):
                for contender in order(contenders, number + turn):
                    self._measure(case, contender, turn + 1, kept, practice)
            self.pair.source.delete([case.workload.name, practice.workload.name])
        return Results(self.options.cases, tuple(self._measured))

    def _load(self, case: Case) -> tuple[Mapping[Outcome, Kept], Case]:
        workload, partitions = case.workload, self.options.partitions
        few = workload.scaled(_PRACTICE_RECORDS * partitions)
        practice = replace(case, workload=replace(few, name=f"practice-{workload.name}"))
        for each in (workload, practice.workload):
            self.log(f"{case.name}: writing {each.records:,} records")
            self.pair.source.create(each.name, partitions)
            load(self.pair.source.bootstrap_servers, each, partitions)
        everything = all_kept(workload, partitions)
        kept = {Outcome.SAME: everything}
        if case.our_outcome is not Outcome.SAME:
            filtered = kept_by_filter(self.pair.source, workload, partitions)
            kept |= {Outcome.MASKED: filtered, Outcome.MARKED: filtered}
        if self.options.warm_up:
            self._warm_up(case, everything)
        return kept, practice

    def _warm_up(self, case: Case, kept: Kept) -> None:
        self.log(f"{case.name}: warming brokers and session up")
        options = self.options
        measure_limit(self.pair, case.workload, partitions=options.partitions, processes=options.processes, number=0)
        for contender in options.contenders_of(case):
            if contender in (Contender.TRANSFORMED, Contender.RAW):
                self._practise(case, contender, kept)

    def _practise(self, case: Case, contender: Contender, kept: Kept) -> None:
        copy = self._planned(case, contender, 0, kept)
        practise(self.host, copy)
        self.pair.forget(f"{copy.setup.source_alias}.")

    def _measure(
        self, case: Case, contender: Contender, number: int, kept: Mapping[Outcome, Kept], practice: Case
    ) -> None:
        if contender in (Contender.TRANSFORMED, Contender.RAW):
            # Idle Python workers end after a minute, less than the copies of others take.
            self._practise(practice, contender, kept[Outcome.SAME])
        self.pair.settle()
        self.log(f"{case.name}: copying with {contender.label}, round {number}")
        copy = self._planned(case, contender, number, kept[case.outcome(contender)])
        if contender in (Contender.TRANSFORMED, Contender.RAW):
            result = measure_mirror(self.pair, self.host, copy)
        else:
            result = measure_mm2(self.pair, copy, self._jars_of(case))
        self._measured.append(result)
        self.log(f"{case.name}: {contender.label}, {result.rate:,.0f} records/s")
        self.pair.forget(f"{copy.setup.source_alias}.")

    def _jars_of(self, case: Case) -> Path | None:
        if case.name != FILTER_AND_MASK or case.mm2_outcome is not Outcome.MASKED:
            return None
        if self._jars is None:
            self._jars = jars_with_transform(self.folder / "mirror-maker")
        return self._jars

    def _planned(self, case: Case, contender: Contender, number: int, kept: Kept) -> Copy:
        self._copies += 1
        setup = CopySetup(
            copier=contender.copier,
            round=self._copies,
            topic=case.workload.name,
            source_bootstrap=self.pair.clear.source_bootstrap,
            target_bootstrap=self.pair.clear.target_bootstrap,
            tasks=self.options.processes,
        )
        return Copy(case, contender, number, setup, kept, self.folder / setup.source_alias)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="bench transforms", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"Run with {_QUICK_RECORDS:,} records, without tuned MM2 and without warm-up: about a minute.",
    )
    parser.add_argument("--cases", default="", help=f"Cases to run: {', '.join(CASE_NAMES)}.")
    parser.add_argument("--copiers", default="", help=f"Copiers to run: {', '.join(Contender)}.")
    parser.add_argument("--records", type=_positive, metavar="N", help=f"Records of each case ({_RECORDS:,}).")
    parser.add_argument(
        "--repeat", type=_positive, default=1, metavar="N", help="Number of rounds; medians are compared (1)."
    )
    parser.add_argument("--partitions", type=_positive, default=8, metavar="N", help="Partitions of each topic (8).")
    parser.add_argument(
        "--processes", type=_positive, default=2, metavar="N", help="tasks.max of all copiers, and cores of Spark (2)."
    )
    parser.add_argument(
        "--spark",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Set a setting of the Spark session; can be repeated.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    return parser.parse_args(argv)


def make_options(chosen: argparse.Namespace, *, compiled: bool) -> Options:
    """Return what to measure, from the arguments.

    Args:
        compiled: True if there is a compiler for MM2's transform.

    Raises:
        ValueError: a case or copier is unknown.
    """
    cases = select_cases(_names(chosen.cases), compiled=compiled)
    records = chosen.records or (_QUICK_RECORDS if chosen.quick else _RECORDS)
    names = _names(chosen.copiers)
    unknown = [name for name in names if name not in list(Contender)]
    if unknown:
        raise ValueError(f"no such copier: {', '.join(unknown)}. Known: {', '.join(Contender)}.")
    contenders = tuple(Contender(name) for name in names) or None
    if contenders is None and chosen.quick:
        # Each start of MM2 takes longer than a small copy.
        contenders = tuple(each for each in Contender if each is not Contender.MM2_TUNED)
    return Options(
        cases=tuple(each.of_records(records) for each in cases),
        contenders=contenders,
        rounds=chosen.repeat,
        partitions=chosen.partitions,
        processes=chosen.processes,
        warm_up=not chosen.quick,
    )


def session_settings(chosen: Sequence[str]) -> dict[str, str]:
    """Return the settings of the Spark session, with the named ones.

    Raises:
        ValueError: one has no value.
    """
    pairs = [text.partition("=") for text in chosen]
    for text, (_, equals, _) in zip(chosen, pairs, strict=True):
        if not equals:
            raise ValueError(f"--spark {text}: write KEY=VALUE.")
    return {**SESSION_SETTINGS, **{name.strip(): value for name, _, value in pairs}}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code: 1 if a copy does not have the expected content."""
    chosen = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress = Console(stderr=True)
    return exit_code(lambda: _measure(chosen, progress), progress)


def _measure(chosen: argparse.Namespace, progress: Console) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)

    def log(text: str) -> None:
        progress.print(text, highlight=False)

    compiled = has_compiler()
    options, settings = make_options(chosen, compiled=compiled), session_settings(chosen.spark)
    machine = describe(java=java_version(), kafka=KAFKA_VERSION)
    with tempfile.TemporaryDirectory(prefix="mirror-transforms-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log("starting two clusters and a Spark session")
        with (
            RelayHost(cores=options.processes, directory=folder, spark_settings=settings) as host,
            started_pair(folder, full_page_cache=options.warm_up) as pair,
        ):
            host.wait_started()
            results = run(options, pair, host, folder, log)
    session = ", ".join(f"{key}={value}" for key, value in settings.items())
    console.print(Text(f"{machine.line()}\nSpark session: {session}", style="dim"))
    console.print(speed_table(results))
    console.print(cpu_table(results))
    if not compiled:
        console.print(
            "This Java has no compiler, so MM2 ran with Connect's own Filter, HasHeaderKey and InsertHeader, which "
            "look into no value: what the goal speaks of was not measured. A JDK has one.",
            style="bold yellow",
        )
    for sentence in wrong_copies(results):
        console.print(sentence, style="bold red")
    console.print(goal_table(goals(results)))
    warn_if_busy(console, machine)
    if chosen.json is not None:
        setup = {"partitions": options.partitions, "processes": options.processes, "rounds": options.rounds}
        document = {"machine": asdict(machine), "setup": setup, "spark": settings, **to_plain(results)}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if all(each.check.equal for each in results.measured) else 1


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value
