"""One measured copy of a case: by this project on a warm session, or by a MirrorMaker 2 with or without a chain."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM
from tools.bench.clusters.pair import Pair
from tools.bench.clusters.window import Look, Window, copy_window
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import CopySetup, render
from tools.bench.errors import BenchError
from tools.bench.machine.cpu_parts import cpu_parts, since
from tools.bench.machine.process_tree import ProcessTree
from tools.bench.transforms.cases import Case, Contender
from tools.bench.transforms.check import Check, Kept, check, total
from tools.bench.transforms.results import Result
from tools.testbed.mm2 import MirrorMaker

#: Maximum time from the request to the first record on the target; and from the last record to the end of the run.
_FIRST_RECORD_SECONDS, _COMMIT_SECONDS = 180.0, 120.0
#: As Kafka's own start script (connect-mirror-maker.sh).
_MM2_HEAP_MEGABYTES = 2048


@dataclass(frozen=True, slots=True)
class Copy:
    """What to copy, by which copier, the expected content, and the folder of its files."""

    case: Case
    contender: Contender
    round: int
    setup: CopySetup
    kept: Kept
    directory: Path

    @property
    def text(self) -> str:
        """The text of its properties file."""
        return render(self.case.properties(self.contender, self.setup))


def measure_mm2(pair: Pair, copy: Copy, jars: Path | None) -> Result:
    """Copy with a fresh MirrorMaker 2, which has ended when this returns.

    Args:
        jars: of MirrorMaker; by default those of its version.

    Raises:
        BenchError: it did not copy everything.
    """
    maker = MirrorMaker(copy.directory, jars=jars, heap_megabytes=_MM2_HEAP_MEGABYTES, jvm_flags=KAFKA_DEFAULT_JVM)

    def still_running() -> None:
        if maker.process is None:
            raise BenchError(f"MirrorMaker ended. The end of its log:\n{maker.log_tail()}")

    asked = time.monotonic()
    with maker:
        maker.start(copy.text)
        tree = ProcessTree(maker.pid)
        looks = pair.target.watch(
            copy.setup.target_topic,
            len(copy.kept),
            expected=total(copy.kept),
            cpu_seconds=tree.cpu_seconds,
            still_running=still_running,
            start_seconds=_FIRST_RECORD_SECONDS,
        )
    window = _window(looks, copy)
    return Result(
        case=copy.case.name,
        contender=copy.contender,
        round=copy.round,
        records=copy.case.workload.records,
        window=window,
        first_record=window.start - asked,
        whole=looks[-1].at - asked,
        cpu_seconds=looks[-1].cpu_seconds,
        check=_check(pair, copy),
    )


def prepare(host: RelayHost, copy: Copy) -> Path:
    """Write the properties file of a copy by this project, and create its target topics; return the file.

    Raises:
        BenchError: they cannot be created.
    """
    copy.directory.mkdir(parents=True, exist_ok=True)
    config = copy.directory / "mirror.properties"
    config.write_text(copy.text, encoding="utf-8")
    host.prepare(str(config), copy.setup.flow)
    return config


def practise(host: RelayHost, copy: Copy) -> None:
    """Copy without measuring: a warm session has done similar copies before.

    Raises:
        BenchError: the flow failed.
    """
    host.begin(str(prepare(host, copy)), copy.setup.flow)
    host.finish(_FIRST_RECORD_SECONDS)


def measure_mirror(pair: Pair, host: RelayHost, copy: Copy) -> Result:
    """Copy by the Spark job on the warm session, then run once more, which must find nothing to copy.

    Raises:
        BenchError: the flow failed, or did not copy everything.
    """
    config = str(prepare(host, copy))
    parts_before = cpu_parts(host.tree)
    asked = time.monotonic()
    host.begin(config, copy.setup.flow)
    looks = pair.target.watch(
        copy.setup.target_topic,
        len(copy.kept),
        expected=total(copy.kept),
        cpu_seconds=host.tree.cpu_seconds,
        still_running=host.still_running,
        start_seconds=_FIRST_RECORD_SECONDS,
    )
    answer = host.finish(_COMMIT_SECONDS)
    done = time.monotonic()
    used = since(parts_before, cpu_parts(host.tree))
    host.begin(config, copy.setup.flow)
    again = host.finish(_COMMIT_SECONDS)
    if again.records:
        raise BenchError(f"a second run copied {again.records} records again.")
    window = _window(looks, copy)
    return Result(
        case=copy.case.name,
        contender=copy.contender,
        round=copy.round,
        records=copy.case.workload.records,
        window=window,
        first_record=window.start - asked,
        whole=done - asked,
        cpu_seconds=sum(used.values()),
        check=_check(pair, copy),
        cpu_parts=used,
        stage=answer.copy_seconds,
    )


def _check(pair: Pair, copy: Copy) -> Check:
    topics = (copy.case.workload.name, copy.setup.target_topic)
    return check(pair.source, pair.target, topics, copy.kept, copy.case.outcome(copy.contender))


def _window(looks: list[Look], copy: Copy) -> Window:
    try:
        return copy_window(looks, total(copy.kept))
    except ValueError as error:
        raise BenchError(f"{copy.contender.label}, {copy.case.name}: {error}.") from error
