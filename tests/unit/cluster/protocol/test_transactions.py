"""DescribeProducers and DescribeTransactions, byte by byte; real brokers' answers are read by the integration tests."""

from __future__ import annotations

import struct

import pytest

from mirror_lib.cluster.protocol.malformed import GarbledAnswerError
from mirror_lib.cluster.protocol.transactions import (
    DescribedProducers,
    ProducerState,
    encode_describe_producers,
    encode_describe_transaction,
    encode_list_transactions,
    parse_describe_all_producers,
    parse_describe_producers,
    parse_describe_transaction,
    parse_list_transactions,
)
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.described_transactions import described_producers, described_transaction

ORDERS = TopicPartition("orders", 3)


def test_questions_are_in_the_compact_encoding() -> None:
    # Tagged fields of the header; one topic with its name and one number; tagged fields of topic and request.
    assert b"".join(encode_describe_producers(ORDERS)) == b"\0\x02\x07orders\x02\0\0\0\x03\0\0"
    # A length of 201 has two bytes as a varint.
    assert b"".join(encode_describe_transaction("m" * 200)) == b"\0\x02\xc9\x01" + b"m" * 200 + b"\0"
    # No filter by state, two ids.
    assert b"".join(encode_list_transactions([7, 258])) == b"\0\x01\x03" + bytes(7) + b"\x07" + bytes(6) + b"\1\2\0"


def test_the_producers_of_many_partitions_are_asked_for_topic_by_topic() -> None:
    places = [ORDERS, TopicPartition("bills", 0), TopicPartition("orders", 1)]

    assert b"".join(encode_describe_producers(*places)) == (
        b"\0\x03\x07orders\x03\0\0\0\x03\0\0\0\x01\0\x06bills\x02\0\0\0\0\0\0"
    )


def test_the_producers_of_many_partitions_are_told_by_partition() -> None:
    def partition(number: int, code: int, producers: bytes) -> bytes:
        return number.to_bytes(4, "big") + code.to_bytes(2, "big") + b"\0" + producers + b"\0"

    nobody, one = b"\x01", b"\x02" + struct.pack(">qiiqiq", 7, 4, 0, 0, 0, -1) + b"\0"
    orders = b"\x07orders\x03" + partition(3, 0, one) + partition(1, 0, nobody) + b"\0"
    bills = b"\x06bills\x02" + partition(0, 29, nobody) + b"\0"

    assert parse_describe_all_producers(memoryview(b"\0" + bytes(4) + b"\x03" + orders + bills + b"\0")) == {
        ORDERS: DescribedProducers(0, {7: ProducerState(7, 4, None)}),
        TopicPartition("orders", 1): DescribedProducers(0, {}),
        TopicPartition("bills", 0): DescribedProducers(29, {}),
    }


def test_names_of_producers_are_told() -> None:
    one, two = (b"\x03" + name + bytes(7) + number + b"\x06Empty\0" for name, number in ((b"t1", b"7"), (b"t2", b"8")))

    assert parse_list_transactions(memoryview(b"\0" + bytes(4) + bytes(2) + b"\x01\x03" + one + two + b"\0")) == (
        0,
        {"t1": ord("7"), "t2": ord("8")},
    )


def test_producers_are_told_by_id_with_what_they_have_open_and_a_refusal_by_its_code() -> None:
    answer = described_producers(ORDERS, [(7, 4, 120), (8, 0, -1)])

    assert parse_describe_producers(answer) == DescribedProducers(
        0, {7: ProducerState(7, 4, 120), 8: ProducerState(8, 0, None)}
    )
    assert parse_describe_producers(described_producers(ORDERS, error_code=6)) == DescribedProducers(6, {})


def test_a_transaction_is_told_with_what_it_covers() -> None:
    answer = described_transaction("mirror:A->B", "Ongoing", producer_id=7, epoch=4, partitions=[ORDERS])

    told = parse_describe_transaction(answer)

    assert (told.error_code, told.state, told.producer_id, told.epoch) == (0, "Ongoing", 7, 4)
    assert told.partitions == {ORDERS}


def test_states_tell_whether_markers_are_still_to_come_and_how_it_ended() -> None:
    for state, ending, committed in (
        ("Empty", False, None),
        ("Ongoing", False, None),
        ("PrepareCommit", True, None),
        ("PrepareAbort", True, None),
        ("PrepareEpochFence", True, None),
        ("CompleteCommit", False, True),
        ("CompleteAbort", False, False),
        ("Dead", False, None),
    ):
        told = parse_describe_transaction(described_transaction("t", state))

        assert (told.is_ending, told.has_committed) == (ending, committed), state


def test_an_answer_that_is_cut_off_is_told_as_garbled(subtests: pytest.Subtests) -> None:
    for read in (parse_describe_producers, parse_describe_transaction):
        with subtests.test(read=read):
            whole = (
                described_producers(ORDERS, [(7, 4, 120)])
                if read is parse_describe_producers
                else described_transaction("t", "Ongoing", partitions=[ORDERS])
            )

            # The tagged fields at its end say nothing.
            for size in range(len(whole) - 3):
                with pytest.raises(GarbledAnswerError):
                    read(whole[:size])  # type: ignore[operator]
