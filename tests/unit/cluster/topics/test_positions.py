"""Position records: Kafka Connect's source offsets with fields of our own.

The partitioner of Java's producer.
"""

import contextlib
import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.topics.mm2_formats import RecordFormatError
from mirror_lib.cluster.topics.position_format import (
    ClusterPair,
    OmittedRange,
    Position,
    PositionKeys,
    PositionState,
    Route,
    claim_of,
    decode_value,
    encode_value,
    murmur2,
    partition_for,
    supersedes,
)
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition

SOURCE = TopicPartition("foo", 0)
OPEN, CLOSED = PositionState.OPEN, PositionState.CLOSED
NO_TEXTS = (b"1", b"[]", b"{}", b"true")
NO_RECORDS = (b"1", b'"1:2"', b'"1:2:3:4"', b'"1:2:x"', b'"-1:2:3"', b'"1:2:"', b"[1,2,3]")

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
partition_numbers = st.integers(min_value=0, max_value=2**31 - 1)


def test_a_key_has_the_bytes_by_which_mm2_finds_it(subtests: pytest.Subtests) -> None:
    for alias, key in (
        # What MM2 4.3.1 (MirrorUtils.wrapPartition) and Connect's JsonConverter write.
        ("A", '["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]'),
        ('q"x', '["MirrorSourceConnector",{"cluster":"q\\"x","partition":0,"topic":"foo"}]'),
        ("é", '["MirrorSourceConnector",{"cluster":"é","partition":0,"topic":"foo"}]'),
        ("a/b", '["MirrorSourceConnector",{"cluster":"a/b","partition":0,"topic":"foo"}]'),
    ):
        with subtests.test(alias=alias):
            keys = PositionKeys(alias)
            assert keys.encode(SOURCE) == key.encode()
            assert keys.decode(key.encode()) == SOURCE


@given(st.text(min_size=1, max_size=20), topics, partition_numbers)
def test_any_key_reads_back_and_is_json(alias: str, topic: str, partition: int) -> None:
    keys = PositionKeys(alias)
    key = keys.encode(TopicPartition(topic, partition))
    assert keys.decode(key) == TopicPartition(topic, partition)
    assert json.loads(key) == ["MirrorSourceConnector", {"cluster": alias, "partition": partition, "topic": topic}]


def test_keys_of_others_are_not_ours() -> None:
    for key in (
        None,
        b"",
        b"foo",
        b'["MirrorSourceConnector",{"cluster":"B","partition":0,"topic":"foo"}]',
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.foo","group":"g1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["other",{"cluster":"A","partition":0,"topic":"foo"}]',
        # The same JSON in other bytes: MM2 does not find these.
        b'["MirrorSourceConnector", {"cluster":"A","partition":0,"topic":"foo"}]',
        b'["MirrorSourceConnector",{"partition":0,"cluster":"A","topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":00,"topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":"0","topic":"foo"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":""}]',
    ):
        assert PositionKeys("A").decode(key) is None, key


def test_a_connector_in_a_shared_connect_cluster_may_have_any_name() -> None:
    keys = PositionKeys("A", connector="A->B.MirrorSourceConnector")
    key = b'["A->B.MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"foo"}]'
    assert keys.encode(TopicPartition("foo", 3)) == key
    assert PositionKeys("A").decode(key) is None


def test_a_value_carries_mm2s_offset_first_and_our_fields_after_it(subtests: pytest.Subtests) -> None:
    skipped = (OmittedRange(3, 5, None, "corrupt-batch"), OmittedRange(9, 10, 1, "record-too-large", True))
    pair = ClusterPair("cluster-1", "cluster-2")
    known = LastRecord(offset=38, batch_bytes=1_024, checksum=4_294_967_295)
    # Most records of a large flow are only looked at for their claims.
    for position, value, claim in (
        (Position("foo", 0, 41), '{"offset":41}', None),
        (
            Position("foo", 0, 41, 40, CLOSED, 4001, 3, "run-1", "8Iu1"),
            '{"offset":41,"target_offset":40,"state":"closed","producer_id":4001,"epoch":3,'
            '"run_id":"run-1","topic_id":"8Iu1"}',
            None,
        ),
        (
            Position("foo", 0, 41, state=OPEN, claim=7, skipped=skipped),
            '{"offset":41,"state":"open","claim":7,"left_out":"[[3,5,null,\\"corrupt-batch\\",false],'
            '[9,10,1,\\"record-too-large\\",true]]"}',
            None,
        ),
        (
            Position("foo", 0, 41, 40, OPEN, claim=7, in_transactions=True),
            '{"offset":41,"target_offset":40,"state":"open","claim":7,"in_transactions":true}',
            None,
        ),
        (
            Position("foo", 0, 41, 40, CLOSED, claim=7, target_topic="A.foo", target_topic_id="8Iu1", clusters=pair),
            '{"offset":41,"target_offset":40,"state":"closed","target_topic":"A.foo","target_topic_id":"8Iu1",'
            '"source_cluster":"cluster-1","target_cluster":"cluster-2","claim":7}',
            (7, False),
        ),
        (
            Position("foo", 0, 41, 40, CLOSED, leader_epoch=2, last_record=known, claim=7),
            '{"offset":41,"target_offset":40,"state":"closed","leader_epoch":2,'
            '"last_record":"38:1024:4294967295","claim":7}',
            (7, False),
        ),
    ):
        with subtests.test(value=value):
            assert encode_value(position).decode() == value
            assert decode_value(SOURCE, value.encode()) == position
            assert claim_of(value.encode()) == claim


def test_every_field_is_one_that_connect_takes() -> None:
    """Connect's `OffsetUtils.validateFormat` refuses lists and objects; MM2 would then begin at the first record."""
    position = Position(
        "foo",
        0,
        41,
        40,
        OPEN,
        4001,
        3,
        "run-1",
        "8Iu1",
        5,
        7,
        skipped=(OmittedRange(3, 5, None, "corrupt-batch"),),
        runs=(OffsetRun(0, 0, 3),),
        backfill="history",
        routes=(Route("other", 1, 17),),
        in_transactions=True,
        target_topic="A.foo",
        target_topic_id="8Iu2",
        clusters=ClusterPair("cluster-1", "cluster-2"),
        first_partitions=3,
        caught_up_at=1_700_000_000_000,
        map_parts=2,
        last_record=LastRecord(40, 1_024, 7),
        target_record=LastRecord(39, 2_048, 7),
        copy="run-0",
        hole_writers=(0, 3),
    )
    # Otherwise a field that is added later would not be looked at.
    assert all(getattr(position, each.name) for each in fields(position) if each.name != "partition")

    for name, value in json.loads(encode_value(position)).items():
        assert isinstance(value, str | int | bool), name
    assert decode_value(SOURCE, encode_value(position)) == position


def test_lists_as_version_0_1_0_wrote_them_are_read() -> None:
    value = b'{"offset":41,"state":"open","left_out":[[3,5,null,"corrupt-batch",false]],"routes":[["other",1,17]]}'

    position = decode_value(SOURCE, value)

    assert position.skipped == (OmittedRange(3, 5, None, "corrupt-batch"),)
    assert position.routes == (Route("other", 1, 17),)


def test_a_position_that_was_overtaken_does_not_count() -> None:
    for current, later, counts in (
        # The run goes on, and ends.
        ((OPEN, 4), (OPEN, 4), True),
        ((OPEN, 4), (CLOSED, 4), True),
        # The next run.
        ((CLOSED, 4), (OPEN, 5), True),
        ((OPEN, 4), (OPEN, 5), True),
        # A worker of an earlier attempt wakes up after its run has ended.
        ((CLOSED, 4), (OPEN, 4), False),
        # A run wakes up after its successor has begun, or ended.
        ((OPEN, 5), (OPEN, 4), False),
        ((OPEN, 5), (CLOSED, 4), False),
        ((CLOSED, 5), (CLOSED, 4), False),
        # MirrorMaker 2 copies now, and a run from before wakes up.
        ((CLOSED, 4), (None, None), True),
        ((None, None), (OPEN, 4), False),
        ((None, None), (OPEN, 5), True),
    ):
        before, behind = (Position("foo", 0, 1, state=state, claim=claim) for state, claim in (current, later))

        assert supersedes(behind, before, claimed=current[1] or 4) is counts, (current, later)


def test_a_value_without_fields_of_ours_is_mm2s() -> None:
    for value, offset in (
        (b'{"offset":41}', 41),
        # Without an offset nothing is copied yet.
        *((nothing, -1) for nothing in (b"{}", b'{"offset":null}', b'{"offset":-1}', b'{"offset":-7}')),
    ):
        assert decode_value(SOURCE, value) == Position("foo", 0, offset), value
    # The position is forgotten.
    for value in (None, b"null"):
        assert decode_value(SOURCE, value) is None, value


def test_a_value_that_is_no_position_says_why(subtests: pytest.Subtests) -> None:
    for value, why in (
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"41", "not a JSON object"),
        (b'{"offset":41.0}', "offset is not an integer"),
        (b'{"offset":"41"}', "offset is not an integer"),
        (b'{"offset":true}', "offset is not an integer"),
        (b'{"offset":9223372036854775808}', "offset is not an integer"),
        (b'{"offset":1,"target_offset":-1}', "target_offset is negative"),
        (b'{"offset":1,"state":"ajar"}', "unknown state 'ajar'"),
        (b'{"offset":1,"run_id":7}', "run_id is not a string"),
        (b'{"offset":1,"left_out":{}}', "left_out is not a list"),
        (b'{"offset":1,"left_out":[[1,2]]}', "left_out contains something other"),
        (b'{"offset":1,"left_out":[[3,3,1,"corrupt-batch",false]]}', "left_out is not in ascending order"),
        (b'{"offset":1,"left_out":[[3,5,2,"a",false],[4,6,2,"a",false]]}', "left_out is not in ascending order"),
        (b'{"offset":1,"in_transactions":1}', "in_transactions"),
        *((b'{"offset":1,"source_cluster":' + cluster + b"}", "source_cluster") for cluster in NO_TEXTS),
        *((b'{"offset":1,"last_record":' + told + b"}", "last_record") for told in NO_RECORDS),
    ):
        with subtests.test(value=value), pytest.raises(RecordFormatError, match=why):
            decode_value(SOURCE, value)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_with_a_typed_error(value: bytes) -> None:
    with contextlib.suppress(RecordFormatError):
        decode_value(SOURCE, value)


def test_the_hash_is_javas() -> None:
    for data, signed in (
        # Kafka's UtilsTest.testMurmur2.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        # What Utils.murmur2 of Kafka 4.3.1 gives for every length modulo 4 and for bytes above 127.
        (b"", 275646681),
        (b"a", -1563381124),
        (b"ab", 316155434),
        (b"abcd", -1323649548),
        (b"abcde", 461995741),
        ("äÿ€".encode(), -814313677),
    ):
        assert murmur2(data) == signed & 0xFFFFFFFF, signed


def test_a_position_goes_to_the_partition_that_java_chooses() -> None:
    for key, partition in (
        # BuiltInPartitioner.partitionForKey(key, 25) of Kafka 4.3.1.
        (b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]', 16),
        (b'["MirrorSourceConnector",{"cluster":"us-west","partition":11,"topic":"orders.v1"}]', 21),
    ):
        assert partition_for(key, 25) == partition, key
