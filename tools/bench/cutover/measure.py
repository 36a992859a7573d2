"""`./run bench cutover`: a cutover on live traffic, by the commands that people use, and what it cost them.

Writers number their records and every group counts what it misses and what it sees twice, on the source and then on the
target. The commands run as processes of their own, with Spark, as they do in production.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mirror_lib.errors import MirrorError
from mirror_lib.features.cutover.model import Step, StepState
from mirror_lib.features.cutover.records import attempts_of
from mirror_lib.features.demo.jars import KAFKA_VERSION
from mirror_lib.ledger.store import Ledger
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.cutover.live_clients import LiveReader, LiveWriter, wait_until
from tools.bench.errors import BenchError
from tools.bench.machine.description import describe, java_version

#: Maximum time for which the writers are stopped.
GOAL_SECONDS = 30.0
_NAME = "wave-1"
_STEP_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Result:
    """The effect of a cutover on its clients."""

    topics: int
    partitions: int
    groups: int
    records: int
    lost: int
    repeated: int
    #: From the last record on the source to the writer's start on the target, as measured by the writer.
    writers_stopped_seconds: float
    #: The same by the cutover's own time line.
    noted_seconds: float | None
    seconds_by_step: dict[str, float]

    @property
    def reached(self) -> bool:
        """True if nothing was lost or repeated, and the writers were back in time."""
        return not self.lost and not self.repeated and self.writers_stopped_seconds < GOAL_SECONDS


def run(pair: Pair, folder: Path, *, topics: int, partitions: int, groups: int, rate: int) -> Result:
    """Move everything."""
    names = [f"topic-{number:02}" for number in range(topics)]
    for name in names:
        pair.source.create(name, partitions)
    config, ledger = _configure(pair, folder)
    writer = LiveWriter(names, partitions, rate)
    readers = [
        LiveReader(f"group-{number:02}", sorted({names[number % topics], names[(number * 7 + 3) % topics]}))
        for number in range(groups)
    ]
    source, target = pair.source.bootstrap_servers, pair.target.bootstrap_servers
    writer.start(source)
    for reader in readers:
        reader.start(source)
    _mirror("run", "--config", str(config), "--flow", "A->B")
    wait_until(lambda: all(reader.read for reader in readers), _STEP_SECONDS, "reading")

    _mirror("cutover", "new", _NAME, "--config", str(config), "--flow", "A->B", "--topics", ".*")
    moving = _started("cutover", "run", _NAME, "--config", str(config), "--wait", str(_STEP_SECONDS))
    try:
        _wait_for(ledger, Step.FREEZE, StepState.WAITING, moving)
        for reader in readers:
            reader.ask_to_stop()
        writer.stop()
        stopped = time.monotonic()
        _mirror("cutover", "confirm", _NAME, "freeze", "--config", str(config), "--yes")
        for reader in readers:
            reader.wait()
        _wait_for(ledger, Step.APPROVE, StepState.WAITING, moving)
        _mirror("cutover", "confirm", _NAME, "approve", "--config", str(config), "--yes")
        _wait_for(ledger, Step.RELEASE, StepState.PASSED, moving)
        writer.start(target)
        back = time.monotonic() - stopped
        for reader in readers:
            reader.start(target)
        if (code := moving.wait(_STEP_SECONDS)) != 0:
            raise BenchError(f"the cutover ended with exit code {code}.")
    finally:
        if moving.poll() is None:
            moving.kill()
    writer.stop()
    written = dict(writer.next)
    wait_until(lambda: all(reader.has_read(written) for reader in readers), _STEP_SECONDS, "reading everything")
    for reader in readers:
        reader.ask_to_stop()
    for reader in readers:
        reader.wait()
    sys.stdout.write(_mirror("cutover", "status", _NAME, "--config", str(config)))
    last = attempts_of(ledger, _NAME)
    facts = last[Step.FINISH].facts
    return Result(
        topics=topics,
        partitions=topics * partitions,
        groups=groups,
        records=sum(written.values()),
        lost=sum(reader.missed for reader in readers),
        repeated=sum(reader.repeated for reader in readers),
        writers_stopped_seconds=round(back, 2),
        noted_seconds=facts["producer_downtime_seconds"],
        seconds_by_step=dict(facts["seconds_by_step"]),
    )


def _configure(pair: Pair, folder: Path) -> tuple[Path, Ledger]:
    url = f"sqlite:///{folder}/ledger.sqlite3"
    settings = {
        "clusters": "A, B",
        "A.bootstrap.servers": pair.source.bootstrap_servers,
        "B.bootstrap.servers": pair.target.bootstrap_servers,
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "A->B.enabled": "true",
        "A->B.topics": "topic-.*",
        "B->A.enabled": "true",
        "B->A.topics": "topic-.*",
        "B->A.mirror.failback": "true",
        "emit.heartbeats.enabled": "false",
        "tasks.max": "2",
        "sync.group.offsets.enabled": "true",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "mirror.ledger.url": url,
    }
    path = folder / "mirror.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    ledger = Ledger.open(url)
    ledger.migrate()
    return path, ledger


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("mirror")), *arguments]


def _mirror(*arguments: str) -> str:
    done = subprocess.run(_command(*arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"mirror {' '.join(arguments)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def _started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(_command(*arguments), stdout=sys.stderr, stderr=sys.stderr)


def _wait_for(ledger: Ledger, step: Step, state: StepState, moving: subprocess.Popen[bytes]) -> None:
    def there() -> bool:
        if moving.poll() is not None and moving.returncode:
            raise BenchError(f"the cutover ended with exit code {moving.returncode} before {step.value}.")
        attempt = attempts_of(ledger, _NAME).get(step)
        return attempt is not None and attempt.state is state

    wait_until(there, _STEP_SECONDS, f"{step.value} {state.value}")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench cutover", description=__doc__)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=3, help="Partitions of each topic (default 3).")
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--rate", type=int, default=2000, help="Records per second, over all topics (default 2000).")
    parser.add_argument("--json", type=Path, help="Write all measurements to this file, as JSON.")
    chosen = parser.parse_args(argv)
    try:
        machine = describe(java=java_version(), kafka=KAFKA_VERSION)
        with tempfile.TemporaryDirectory(prefix="mirror-cutover-") as name, started_pair(Path(name)) as pair:
            result = run(
                pair,
                Path(name),
                topics=chosen.topics,
                partitions=chosen.partitions,
                groups=chosen.groups,
                rate=chosen.rate,
            )
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    document: dict[str, Any] = {
        "machine": asdict(machine),
        "goal_seconds": GOAL_SECONDS,
        **asdict(result),
        "reached": result.reached,
    }
    text = json.dumps(document, indent=2)
    sys.stdout.write(text + "\n")
    if chosen.json is not None:
        chosen.json.write_text(text + "\n")
    return 0 if result.reached else 1
