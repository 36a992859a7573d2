"""What a real target refuses, or a real source cannot give, under each policy of a flow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.copy.transfer import fetch_responses
from mirror_lib.errors import MirrorError, RecordRefusedError, RecordTooLargeError
from mirror_lib.planning.model import CopyJob
from mirror_lib.planning.topic_limits import LimitKind, limit_warnings
from mirror_lib.records import poison
from tests.support.flows import Flow
from tests.support.interruptions import interrupted, killed_after
from tests.support.kafka import Record, consume, set_config
from tests.support.mirrored_topic import MirroredTopic

HOUR_MS = 3_600_000
SIZE = {"max.message.bytes": "5000"}
TIMES = {"message.timestamp.before.max.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(HOUR_MS)}
KEYS = {"cleanup.policy": "compact"}
LEAVING_OUT = pytest.mark.parametrize("policy", ["quarantine", "skip"])


class Scene:
    """A flow of one topic under one policy, with a quarantine topic of its own."""

    def __init__(self, mirrored: MirroredTopic, *, policy: str, target: Mapping[str, str] | None = None) -> None:
        self.mirrored = mirrored
        self.quarantine = f"{mirrored.name}-kept"
        mirrored.create(configs={"message.timestamp.after.max.ms": str(2**63 - 1)})
        mirrored.create_remote(configs=target)
        settings = {"mirror.poison.policy": policy, "mirror.quarantine.topic": self.quarantine}
        self.flow: Flow = mirrored.flow(settings)

    def write(self, written: Sequence[Record], **settings: object) -> None:
        self.mirrored.produce(written, **settings)

    def run(self) -> RunReport:
        return self.flow.run()

    @property
    def copied(self) -> list[tuple[bytes | None, bytes | None, int | None]]:
        return [(each.key, each.value, each.timestamp_ms) for each in self.mirrored.copied()]

    def written(self, *, without: Sequence[int]) -> list[tuple[bytes | None, bytes | None, int | None]]:
        """The source, but for some offsets."""
        found = consume(self.mirrored.source, self.mirrored.name)
        return [(each.key, each.value, each.timestamp_ms) for each in found if each.offset not in without]


def small(count: int, *, key: bytes | None = b"k", timestamp_ms: int | None = None) -> list[Record]:
    return [Record(value=b"value-%d" % n, key=key, timestamp_ms=timestamp_ms) for n in range(count)]


def large() -> Record:
    return Record(value=Random(3).randbytes(9_000), key=b"large")


def poisoned(scene: Scene, target: Mapping[str, str]) -> tuple[list[int], str]:
    """Write records of which some cannot be copied to such a target; returns their offsets, and the reason."""
    now = int(time.time() * 1000)
    if target == SIZE:
        # Together in batches, and in one of its own.
        scene.write([*small(5), large(), *small(3)])
        scene.write([large()])
        scene.write(small(4), compression_type="lz4")
        return [5, 9], "record-too-large"
    if target == TIMES:
        old, late = small(2, timestamp_ms=now - 3 * HOUR_MS), small(1, timestamp_ms=now + 3 * HOUR_MS)
        scene.write([*small(4, timestamp_ms=now), *old, *small(3, timestamp_ms=now), *late])
        scene.write(small(6, timestamp_ms=now), compression_type="zstd")
        return [4, 5, 9], "record-refused"
    scene.write([*small(4), *small(2, key=None), *small(3)], compression_type="gzip")
    scene.write(small(1, key=None))
    scene.write(small(2))
    return [4, 5, 9], "record-refused"


def skipped(report: RunReport) -> list[int]:
    return [
        offset
        for result in report.results
        for poison in result.poison
        for offset in range(poison.first_offset, poison.next_offset)
    ]


@pytest.mark.parametrize("target", [SIZE, TIMES, KEYS], ids=["size", "times", "keys"])
class TestGivenRecordsThatTheTargetRefuses:
    @LEAVING_OUT
    def test_only_they_are_left_out(self, mirrored: MirroredTopic, target: Mapping[str, str], policy: str) -> None:
        scene = Scene(mirrored, policy=policy, target=target)
        bad, reason = poisoned(scene, target)

        report = scene.run()

        assert report.errors == ()
        assert skipped(report) == bad
        assert {poison.cause for result in report.results for poison in result.poison} == {reason}
        assert report.skipped == len(bad)
        assert scene.copied == scene.written(without=bad)
        if policy == "quarantine":
            assert [kept.key for kept in consume(mirrored.target, scene.quarantine)] == [
                f"{mirrored.name}-0-{offset}".encode() for offset in bad
            ]
        # The position is behind them: what follows is copied by the next run, and nothing twice.
        scene.write(small(3))
        assert scene.run().records == 3
        assert scene.copied == scene.written(without=bad)

    def test_with_fail_a_plan_warns_and_the_partition_stops_at_the_first_until_the_target_takes_it(
        self, mirrored: MirroredTopic, target: Mapping[str, str]
    ) -> None:
        scene = Scene(mirrored, policy="fail", target=target)
        bad, _ = poisoned(scene, target)
        assert_warned_of(scene, mirrored, target)

        report = scene.run()

        assert_stopped(report, RecordTooLargeError if target == SIZE else RecordRefusedError, bad[0])
        # It identifies the log right there, not by the record of the run before.
        stored = scene.flow.position(mirrored.name)
        assert stored.last_record is not None
        assert stored.last_record.offset == stored.offset == bad[0] - 1
        assert scene.copied == scene.written(without=range(bad[0], 100))
        for name in target:
            wide = {"max.message.bytes": "1000000", "cleanup.policy": "delete"}.get(name, str(2**63 - 1))
            set_config(mirrored.target, mirrored.remote, name, wide)
        assert scene.run().errors == ()
        assert scene.copied == scene.written(without=())


def assert_warned_of(scene: Scene, mirrored: MirroredTopic, target: Mapping[str, str]) -> None:
    """A plan warns of the target's limits beforehand."""
    settings = scene.flow.config.clients
    remote = {mirrored.name: mirrored.remote}
    with (
        ClusterAdmin(Connection.from_settings(settings.source_admin)) as source,
        ClusterAdmin(Connection.from_settings(settings.target_admin)) as there,
    ):
        found = {warning.kind for warning in limit_warnings(source, there, remote)}

    expected = {
        "max.message.bytes": {LimitKind.SIZE},
        "message.timestamp.before.max.ms": {LimitKind.TIMESTAMP_BEFORE, LimitKind.TIMESTAMP_AFTER},
        "cleanup.policy": {LimitKind.KEY},
    }[next(iter(target))]
    assert expected <= found
    scene.flow.sync_internal_topics()
    warnings = plan_flow(scene.flow.config, RunOptions()).warnings
    assert len(warnings) == len(found)
    assert any(mirrored.name in warning for warning in warnings)


def assert_stopped(report: RunReport, kind: type[MirrorError], offset: int) -> None:
    (error,) = report.errors
    assert isinstance(error, kind), error
    assert error.where.offset == offset
    assert "mirror.poison.policy" in error.action
    assert report.skipped == 0


@LEAVING_OUT
def test_a_time_so_close_to_the_bound_that_only_the_broker_can_tell(mirrored: MirroredTopic, policy: str) -> None:
    scene = Scene(mirrored, policy=policy, target=TIMES)
    now = int(time.time() * 1000)
    close = small(1, timestamp_ms=now - HOUR_MS - 5_000)
    for _ in range(3):
        scene.write([*small(5, timestamp_ms=now), *close, *small(5, timestamp_ms=now)])

    report = scene.run()

    assert report.errors == ()
    assert skipped(report) == [5, 16, 27]
    assert scene.copied == scene.written(without=[5, 16, 27])


def test_what_the_broker_alone_refused_is_found_and_known_to_the_run_that_takes_over(mirrored: MirroredTopic) -> None:
    """The bound changes during the run."""
    scene = Scene(mirrored, policy="quarantine")
    scene.write([*small(20), *small(1, key=None), *small(20)])

    def compacted_meanwhile(job: CopyJob) -> CopyJob:
        set_config(mirrored.target, mirrored.remote, "cleanup.policy", "compact")
        return job

    interrupted(scene.flow, killed_after(compacted_meanwhile))
    set_config(mirrored.target, mirrored.remote, "cleanup.policy", "delete")

    report = scene.run()

    assert report.errors == ()
    assert (skipped(report), report.records) == ([20], 0)
    assert scene.copied == scene.written(without=[20])
    (kept,) = consume(mirrored.target, scene.quarantine)
    assert dict(kept.headers)["reason"] == b"record-refused"


class TestGivenADamagedBatch:
    def damaged(self, scene: Scene) -> None:
        """Offsets 10 and 11 in a batch with a wrong checksum, as a failing disk would leave it."""
        scene.write(small(10))
        scene.write([Record(value=b"to be damaged"), Record(value=b"with it")])
        scene.write(small(5))
        scene.mirrored.damage(b"to be damaged")

    @LEAVING_OUT
    def test_its_range_is_left_out_and_the_rest_is_copied(self, mirrored: MirroredTopic, policy: str) -> None:
        scene = Scene(mirrored, policy=policy)
        self.damaged(scene)

        report = scene.run()

        assert report.errors == ()
        assert skipped(report) == [10, 11]
        assert [poison.cause for poison in report.results[0].poison] == ["corrupt-batch"]
        assert [value for _, value, _ in scene.copied] == [each.value for each in [*small(10), *small(5)]]
        if policy == "quarantine":
            (kept,) = consume(mirrored.target, scene.quarantine)
            assert b"To be damaged" in (kept.value or b"")
            assert dict(kept.headers)["unit"] == b"batch"

    def test_a_run_that_takes_over_knows_that_it_was_left_out(self, mirrored: MirroredTopic) -> None:
        scene = Scene(mirrored, policy="skip")
        self.damaged(scene)
        interrupted(scene.flow, killed_after())

        report = scene.run()

        assert report.errors == ()
        assert (skipped(report), report.records, report.results[0].recovered) == ([10, 11], 0, 15)
        assert [value for _, value, _ in scene.copied] == [each.value for each in [*small(10), *small(5)]]
        assert [(gap.first_offset, gap.next_offset) for gap in scene.flow.ledger.gaps("A->B")] == [(10, 12)]


@LEAVING_OUT
def test_of_many_separate_ranges_each_run_skips_a_part_and_the_next_continues(
    mirrored: MirroredTopic, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poison, "MOST_SKIPPED", 4)
    monkeypatch.setattr(fetch_responses, "_MOST_SKIPPED_RANGES", 4)
    scene = Scene(mirrored, policy=policy, target=KEYS)
    # All in one batch, and at its end some of which nothing is copied.
    keys = [None if n % 2 or n > 16 else b"k" for n in range(20)]
    scene.write([Record(value=b"%d" % n, key=key) for n, key in enumerate(keys)], compression_type="gzip")
    without = [n for n, key in enumerate(keys) if key is None]

    reports = [scene.run()]
    while reports[-1].errors and len(reports) < 5:
        reports.append(scene.run())

    stopped, last = reports[:-1], reports[-1]
    assert [(report.exit_code, report.errors[0].reason) for report in stopped] == [(1, "many-skipped-ranges")] * 2
    assert [report.errors[0].where.offset for report in stopped] == [8, 16]
    assert (last.exit_code, [skipped(report) for report in reports]) == (0, [without[:4], without[4:8], without[8:]])
    assert scene.copied == scene.written(without=without)
    gaps = scene.flow.ledger.gaps("A->B")
    assert sorted(n for gap in gaps for n in range(gap.first_offset, gap.next_offset)) == without


def test_the_quarantine_topic_keeps_what_is_larger_than_a_record_of_it(mirrored: MirroredTopic) -> None:
    scene = Scene(mirrored, policy="quarantine", target=SIZE)
    content = Random(5).randbytes(900_000)
    scene.write([Record(value=content)])

    assert scene.run().errors == ()

    parts = consume(mirrored.target, scene.quarantine)
    assert [dict(part.headers)["part"] for part in parts] == [b"1/2", b"2/2"]
    assert content in b"".join(part.value or b"" for part in parts)
