"""What cannot be copied stops the partition exactly there, or is left out while all around it goes on in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.copy.commit.poison_gaps import gap_rows
from mirror_lib.errors import AuthorizationError, CorruptBatchError, RecordRefusedError, TopicMissingError
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.planning.model import PartitionResult
from mirror_lib.records.header import parse_header
from mirror_lib.records.rules import RecordRules
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.fake_cluster import FakePartition, Produced, job
from tests.support.records.record_batches import SourceRecord, batch, read_with_aiokafka
from tests.unit.copy.conftest import CopyBetween, FakePair

QUARANTINE_TOPIC = "mm2-quarantine.A.internal"
NEEDS_KEY = RecordRules(needs_key=True)
FAIL, QUARANTINE, SKIP = PoisonPolicy.FAIL, PoisonPolicy.QUARANTINE, PoisonPolicy.SKIP
INCOMPRESSIBLE = Random(7).randbytes(2_000)
LEAVING_OUT = pytest.mark.parametrize("policy", [QUARANTINE, SKIP])


class Scene(FakePair):
    """A source partition with given records, its target, and the quarantine topic."""

    def __init__(self, copy_between: CopyBetween) -> None:
        super().__init__(copy_between)
        self.log = self.source.add("orders")
        self.quarantine = self.target.add(QUARANTINE_TOPIC)

    def write(self, *records: SourceRecord, codec: int = 0) -> bytes:
        raw = batch(records, codec=codec)
        self.log.append(raw)
        return raw

    def copy_by(
        self, policy: PoisonPolicy, *, rules: RecordRules | None = None, limit: int = 1_048_588, **more: object
    ) -> PartitionResult:
        partition = self.opened(max_message_bytes=limit)
        if rules is not None:
            partition = replace(partition, plan=replace(partition.plan, target_rules=rules))
        wanted = replace(job(partition, poison_policy=policy, **more), quarantine_topic=QUARANTINE_TOPIC)
        (result,) = self._copy_between(self.source, self.target, wanted)
        return result

    def refuse_values(self, bad: set[bytes], code: int) -> None:
        """The target refuses every batch with one of these values."""

        def refuse(request: Produced) -> int | None:
            _, key, raw = request
            if key.topic == QUARANTINE_TOPIC:
                return None
            return code if any(record[3] in bad for record in read_with_aiokafka(raw)) else None

        self.target.refuse = refuse


@pytest.fixture
def scene(copy_between: CopyBetween) -> Scene:
    return Scene(copy_between)


def keyed(number: int, *, key: bytes | None = b"k", size: int = 3) -> SourceRecord:
    return SourceRecord(number, key=key, value=b"%d" % number + bytes(size))


def map_of(result: PartitionResult) -> dict[int, int]:
    """Target offset by source offset."""
    return {run.source_first + number: run.target_first + number for run in result.runs for number in range(run.count)}


def ranges(result: PartitionResult) -> list[tuple[int, int, int | None, str]]:
    return [(each.first_offset, each.next_offset, each.records, each.cause) for each in result.poison]


def kept(log: FakePartition) -> list[tuple[str, dict[str, str], bytes]]:
    """(key, headers, value) of what stands in the quarantine topic."""
    found = []
    for raw in log.batches:
        for _, _, key, value, headers in read_with_aiokafka(raw):
            assert key is not None
            assert value is not None
            found.append((key.decode(), {name: (text or b"").decode() for name, text in headers}, bytes(value)))
    return found


class TestGivenARecordThatTheTargetRefuses:
    @LEAVING_OUT
    def test_only_it_is_left_out_and_the_map_has_a_hole_there(self, scene: Scene, policy: PoisonPolicy) -> None:
        # Neighbours become one range, and one at the very end moves the position, too.
        scene.write(keyed(0), keyed(1, key=None), keyed(2, key=None), keyed(3))
        scene.write(keyed(4, key=None))

        result = scene.copy_by(policy, rules=NEEDS_KEY)

        assert result.complete
        assert (result.records, result.source_next, result.target_next) == (2, 5, 2)
        assert map_of(result) == {0: 0, 3: 1}
        assert scene.copied() == [keyed(n).value for n in (0, 3)]
        assert ranges(result) == [(1, 3, 2, "record-refused"), (4, 5, 1, "record-refused")]
        assert {each.quarantined for each in result.poison} == {policy is QUARANTINE}


class TestGivenARefusalThatOnlyTheTargetKnowsOf:
    """Clocks differ, configs change during a run, and brokers may have rules of their own."""

    def test_with_fail_the_very_record_is_named_and_what_precedes_it_is_copied(self, scene: Scene) -> None:
        scene.write(*(SourceRecord(number, value=b"%d" % number) for number in range(20)))
        scene.refuse_values({b"13"}, ErrorCode.INVALID_RECORD)

        result = scene.copy_by(FAIL)

        assert isinstance(result.error, RecordRefusedError)
        assert result.error.where.offset == 13
        assert "mirror.poison.policy" in result.error.action
        assert (result.source_next, result.target_next, result.certain) == (13, 13, True)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_the_target_has_the_source_without_the_poison(self, copy_between: CopyBetween, data: st.DataObject) -> None:
        sizes = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=10))
        total = sum(sizes)
        some = st.sets(st.integers(0, total - 1))
        keyless, refused, large = data.draw(some), data.draw(some), data.draw(some)
        scene, offset, records = Scene(copy_between), 0, []
        for size in sizes:
            members = [
                SourceRecord(
                    number,
                    key=None if number in keyless else b"k",
                    value=b"%d" % number + (INCOMPRESSIBLE if number in large else b""),
                )
                for number in range(offset, offset + size)
            ]
            scene.write(*members, codec=data.draw(st.sampled_from([0, 3])))
            records += members
            offset += size
        codes = (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.MESSAGE_TOO_LARGE)
        code = data.draw(st.sampled_from(codes))
        scene.refuse_values({records[number].value or b"" for number in refused}, code)

        result = scene.copy_by(
            data.draw(st.sampled_from([QUARANTINE, SKIP])),
            rules=NEEDS_KEY,
            limit=1_000,
            batch_passthrough_min_bytes=data.draw(st.sampled_from([0, 150, 16_384])),
            fetch_partition_max_bytes=data.draw(st.sampled_from([200, 5_000, 1 << 20])),
        )

        poison = keyless | refused | large
        wanted = [record for record in records if record.offset not in poison]
        assert (result.complete, result.certain) == (True, True)
        assert scene.copied() == [record.value for record in wanted]
        assert map_of(result) == {record.offset: number for number, record in enumerate(wanted)}
        told = {n for first, behind, _, _ in ranges(result) for n in range(first, behind)}
        assert told == poison
        assert sum(each.records or 0 for each in result.poison) == len(poison)


class TestGivenADamagedBatch:
    def damaged(self, scene: Scene, *, at: int = -1) -> bytes:
        """Three batches, the middle one of offsets 2 to 4 damaged; returns its bytes."""
        scene.write(keyed(0), keyed(1))
        scene.write(keyed(2), keyed(3), keyed(4))
        scene.write(keyed(5))
        raw = bytearray(scene.log.batches[1])
        raw[at] ^= 0x10
        scene.log.batches[1] = bytes(raw)
        return bytes(raw)

    @LEAVING_OUT
    def test_its_whole_range_is_left_out_whatever_byte_is_wrong(
        self, copy_between: CopyBetween, policy: PoisonPolicy
    ) -> None:
        for at in (-1, 17, 23, 26, 58, 60):
            scene = Scene(copy_between)
            self.damaged(scene, at=at)

            result = scene.copy_by(policy)

            assert result.complete, at
            assert map_of(result) == {0: 0, 1: 1, 5: 2}, at
            assert ranges(result) == [(2, 5, None, "corrupt-batch")], at

    @LEAVING_OUT
    def test_a_fetch_that_ends_with_it_is_repeated_to_see_what_follows(
        self, scene: Scene, policy: PoisonPolicy
    ) -> None:
        # The number of offsets is what is damaged: only the next batch tells the truth.
        self.damaged(scene, at=23)
        size = sum(len(raw) for raw in scene.log.batches[:2])

        result = scene.copy_by(policy, fetch_partition_max_bytes=size)

        assert result.complete
        assert ranges(result) == [(2, 5, None, "corrupt-batch")]

    def test_the_last_batch_of_the_log_may_be_the_damaged_one_unless_nothing_tells_its_end(
        self, copy_between: CopyBetween
    ) -> None:
        def copy_with_damage(at: int) -> PartitionResult:
            scene = Scene(copy_between)
            scene.write(keyed(0))
            raw = bytearray(scene.write(keyed(1), keyed(2)))
            raw[at] ^= 0x40
            scene.log.batches[1] = bytes(raw)
            return scene.copy_by(SKIP)

        result = copy_with_damage(-1)

        assert (result.complete, result.source_next) == (True, 3)
        assert ranges(result) == [(1, 3, None, "corrupt-batch")]

        result = copy_with_damage(26)

        assert isinstance(result.error, CorruptBatchError)
        assert "the end of the damage" in result.error.action
        assert (result.source_next, result.poison) == (1, ())


class TestGivenTheQuarantineTopic:
    def test_a_record_is_kept_with_its_bytes_and_its_place(self, scene: Scene) -> None:
        scene.write(keyed(0), SourceRecord(1, timestamp=1_234, key=None, value=b"\x00raw\xff"))

        scene.copy_by(QUARANTINE, rules=NEEDS_KEY)

        ((key, headers, value),) = kept(scene.quarantine)
        assert key == "orders-0-1"
        assert headers.pop("detail")
        assert headers == {
            "flow": "A->B",
            "topic": "orders",
            "partition": "0",
            "first_offset": "1",
            "last_offset": "1",
            "reason": "record-refused",
            "codec": "none",
            "unit": "record",
            "timestamp": "1234",
            "part": "1/1",
        }
        # KIP-98: length 11, attributes, timestamp and offset deltas of 0, no key, 5 bytes of value, no headers.
        assert value == bytes((22, 0, 0, 0, 1, 10)) + b"\x00raw\xff" + bytes((0,))

    def test_a_damaged_batch_is_kept_whole(self, scene: Scene) -> None:
        raw = TestGivenADamagedBatch().damaged(scene)

        scene.copy_by(QUARANTINE)

        ((key, headers, value),) = kept(scene.quarantine)
        assert key == "orders-0-2"
        assert value == raw
        assert (headers["unit"], headers["codec"], headers["timestamp"]) == ("batch", "unknown", "unknown")
        assert (headers["first_offset"], headers["last_offset"]) == ("2", "4")

    def test_it_is_written_before_anything_behind_it(self, scene: Scene) -> None:
        scene.write(keyed(0))
        scene.write(keyed(1, key=None))
        scene.write(keyed(2))

        scene.copy_by(QUARANTINE, rules=NEEDS_KEY)

        order = [(key.topic, parse_header(raw).count) for _, key, raw in scene.target.produced]
        assert order[0][0] == QUARANTINE_TOPIC

    def test_a_fault_that_passes_is_waited_for(self, scene: Scene) -> None:
        scene.write(keyed(0, key=None), keyed(1))
        answers = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT]
        scene.target.refuse = lambda request: (
            answers.pop() if answers and request[1].topic == QUARANTINE_TOPIC else None
        )

        result = scene.copy_by(QUARANTINE, rules=NEEDS_KEY)

        assert result.complete
        assert len(kept(scene.quarantine)) == 1

    @pytest.mark.parametrize("known_before", [True, False])
    def test_what_cannot_be_kept_stops_the_partition_and_nothing_is_lost(
        self, scene: Scene, known_before: bool
    ) -> None:
        # Either the copy knows that the record will be refused, or the target tells.
        scene.write(keyed(0))
        scene.write(keyed(1, key=None))
        scene.write(keyed(2))
        scene.refuse_values({keyed(1).value or b""}, ErrorCode.INVALID_RECORD)
        by_value = scene.target.refuse
        scene.target.refuse = lambda request: (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED if request[1].topic == QUARANTINE_TOPIC else by_value(request)
        )

        result = scene.copy_by(QUARANTINE, rules=NEEDS_KEY if known_before else None)

        assert isinstance(result.error, AuthorizationError)
        assert QUARANTINE_TOPIC in result.error.what
        assert (result.source_next, result.target_next, result.certain) == (1, 1, True)
        assert scene.copied() == [keyed(0).value]
        assert result.poison == ()

    def test_a_topic_that_does_not_exist_is_told(self, scene: Scene) -> None:
        scene.write(keyed(0, key=None))
        del scene.target.leaders[TopicPartition(QUARANTINE_TOPIC, 0)]
        scene.target.topic_errors[QUARANTINE_TOPIC] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        result = scene.copy_by(QUARANTINE, rules=NEEDS_KEY)

        assert isinstance(result.error, TopicMissingError)
        assert "topic sync" in result.error.action


class TestGivenAFailureBehindThePoison:
    def test_what_was_not_copied_past_it_is_not_told_as_left_out(self, scene: Scene) -> None:
        # The next run begins before the poison and finds it again.
        scene.write(keyed(0), keyed(1, key=None), keyed(2))
        scene.target.refuse = lambda request: ErrorCode.POLICY_VIOLATION

        result = scene.copy_by(SKIP, rules=NEEDS_KEY)

        assert result.error is not None
        assert (result.source_next, result.poison) == (0, ())


class TestGapRows:
    FOUND_AT = datetime(2026, 1, 2, tzinfo=UTC)

    def gaps(self, results: Sequence[PartitionResult], policy: PoisonPolicy) -> list[GapRow]:
        return list(gap_rows(FlowId("A", "B"), "run-1", results, policy, found_at=self.FOUND_AT))

    @LEAVING_OUT
    def test_every_range_is_a_gap_that_the_policy_accepted(self, scene: Scene, policy: PoisonPolicy) -> None:
        scene.write(keyed(0), SourceRecord(1, timestamp=1_000), keyed(2), SourceRecord(3, timestamp=-1))

        result = scene.copy_by(policy, rules=NEEDS_KEY)

        first, second = self.gaps([result], policy)

        assert (first.flow, first.topic, first.partition, first.run_id) == ("A->B", "orders", 0, "run-1")
        assert (first.first_offset, first.next_offset, first.records) == (1, 2, 1)
        assert (first.cause, first.state) == ("record-refused", GapState.ACCEPTED.value)
        assert (first.decided_by, first.found_at) == (f"policy {policy.value}", self.FOUND_AT)
        assert first.first_time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
        assert (second.first_offset, second.first_time) == (3, None)
        assert first.id != second.id
        # The same round gives the same rows.
        assert self.gaps([result], policy) == [first, second]
