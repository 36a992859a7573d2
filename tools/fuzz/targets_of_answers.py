"""Responses of brokers: damaged on the way, or from something that is not a broker."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

from mirror_lib.cluster.protocol import acls as acl_protocol
from mirror_lib.cluster.protocol import fetch as fetch_protocol
from mirror_lib.cluster.protocol import groups as group_protocol
from mirror_lib.cluster.protocol import produce as data_protocol
from mirror_lib.cluster.protocol import topic_ids as topic_id_protocol
from mirror_lib.cluster.protocol import transactions as transaction_protocol
from mirror_lib.errors import MirrorError
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import mutated

_Reader = Callable[[memoryview], Any]


class _Answers(Target):
    """One byte for the kind of response, then the response."""

    errors = (MirrorError,)

    def kinds(self) -> Sequence[tuple[_Reader, bytes]]:
        """Return the parser of each kind of response, and a valid one."""
        raise NotImplementedError

    def make(self, random: Random) -> bytes:
        """Return a damaged valid response."""
        kinds = self.kinds()
        which = random.randrange(len(kinds))
        return bytes((which,)) + mutated(kinds[which][1], random, [valid for _, valid in kinds])

    def run(self, data: bytes) -> str:
        """Parse it."""
        kinds = self.kinds()
        read, valid = kinds[(data[0] if data else 0) % len(kinds)]
        found = read(memoryview(data)[1:])
        if isinstance(found, list) and len(found) > len(data):
            raise Wrong(f"{len(found)} parts in {len(data)} bytes")
        return f"{getattr(read, '__name__', 'answer')}: {'as before' if found == read(memoryview(valid)) else 'other'}"


class FetchAnswers(_Answers):
    """Fetch, in both encodings."""

    name = "fetch-answers"
    what = "answers to Fetch, versions 11 to 13"

    def kinds(self) -> Sequence[tuple[_Reader, bytes]]:
        """By version."""
        return (_read_plain, _fetch_plain()), (_read_checking, _fetch_checking()), (_read_by_id, _fetch_by_id())


def _read_plain(view: memoryview) -> Any:
    return fetch_protocol.parse_fetch(view, fetch_protocol.PLAIN_VERSION)


def _read_checking(view: memoryview) -> Any:
    return fetch_protocol.parse_fetch(view, fetch_protocol.EPOCH_CHECKING_VERSION)


def _read_by_id(view: memoryview) -> Any:
    return fetch_protocol.parse_fetch(view, fetch_protocol.TOPIC_ID_VERSION, {_TOPIC_ID: "orders"})


_FACTS = struct.pack(">ihqqq", 3, 0, 100, 90, 5)
_RECORDS = b"records " * 10
_TOPIC_ID = bytes(range(16))


@cache
def _fetch_plain() -> bytes:
    partition = _FACTS + struct.pack(">iqq", 1, 9, 50) + struct.pack(">ii", -1, len(_RECORDS)) + _RECORDS
    topic = _plain("orders") + struct.pack(">i", 2) + partition * 2
    return struct.pack(">ihii", 0, 0, 0, 2) + topic + topic


def _fetch_checking() -> bytes:
    return _fetch_compact(_compact("orders"))


def _fetch_by_id() -> bytes:
    return _fetch_compact(_TOPIC_ID)


@cache
def _fetch_compact(named: bytes) -> bytes:
    diverging = b"\x01\x00\x0c" + struct.pack(">iq", 3, 77)
    aborted = b"\x02" + struct.pack(">qq", 9, 50) + b"\0"
    partition = _FACTS + aborted + struct.pack(">i", -1) + bytes((len(_RECORDS) + 1,)) + _RECORDS + diverging
    topic = named + b"\x03" + partition * 2 + b"\0"
    return b"\0" + struct.pack(">ihi", 0, 0, 0) + b"\x03" + topic * 2 + b"\0"


class OtherAnswers(_Answers):
    """Produce, offsets, sizes, groups, ACLs, transactions."""

    name = "other-answers"
    what = "answers to Produce, ListOffsets, DescribeLogDirs, OffsetFetch, DescribeAcls, DescribeProducers and others"

    def kinds(self) -> Sequence[tuple[_Reader, bytes]]:
        """One of each."""
        return _others()


@cache
def _others() -> tuple[tuple[_Reader, bytes], ...]:
    one, topic = struct.pack(">i", 1), _plain("orders")
    produced = one + topic + one + struct.pack(">ihqqq", 3, 0, 100, -1, 5) + bytes(4)
    produced_by_id = b"\0\x02" + _TOPIC_ID + b"\x02" + struct.pack(">ihqqq", 3, 87, -1, -1, -1) + b"\x02" + bytes(4)
    produced_by_id += _compact("why") + b"\0" + _compact("all of it") + bytes(2) + bytes(4) + b"\0"
    replicas = (b"\x02" + bytes(4)) * 2 + b"\x01"
    topic_ids = b"\0" + bytes(4) + b"\x02" + bytes(4) + _compact("host") + bytes(4) + b"\0\0" + _compact("cluster")
    topic_ids += bytes(4) + b"\x02" + bytes(2) + _compact("orders") + _TOPIC_ID + b"\0\x02" + bytes(14) + replicas
    topic_ids += bytes(1) + bytes(5) + bytes(5)
    log_dirs = bytes(4) + one + bytes(2) + _plain("/data") + one + topic + one + struct.pack(">iqqb", 3, 4096, 0, 0)
    listed = struct.pack(">ihqq", 3, 0, -1, 100)
    list_end = bytes(4) + one + topic + one + listed + struct.pack(">i", 7)
    local_start = b"\0" + bytes(4) + b"\x02" + _compact("orders") + b"\x02" + listed + bytes(7)
    epochs = bytes(4) + one + topic + one + struct.pack(">hiiq", 0, 3, 7, 100)
    committed = struct.pack(">iqi", 3, 100, -1)
    offsets = bytes(4) + one + topic + one + committed + _plain("note") + bytes(2) + bytes(2)
    many_offsets = b"\0" + bytes(4) + b"\x02" + _compact("billing") + b"\x02" + _compact("orders") + b"\x02" + committed
    many_offsets += _compact("note") + bytes(2) + b"\0" + b"\0" + bytes(2) + b"\0" + b"\0"
    coordinators = b"\0" + bytes(4) + b"\x02" + _compact("billing") + struct.pack(">i", 1) + _compact("host")
    coordinators += struct.pack(">ih", 9092, 0) + _compact("") + b"\0" + b"\0"
    coordinator = bytes(4) + bytes(2) + _plain("") + struct.pack(">i", 1) + _plain("host") + struct.pack(">i", 9092)
    groups = b"\0" + bytes(4) + bytes(2) + b"\x02"
    groups += _compact("billing") + _compact("consumer") + _compact("Stable") + _compact("classic") + b"\0" + b"\0"
    plain_groups = bytes(4) + bytes(2) + one + _plain("billing") + _plain("consumer")
    commit = bytes(4) + one + topic + one + struct.pack(">ih", 3, 0)
    acl = _plain("User:ann") + _plain("*") + struct.pack(">bb", 3, 3)
    acls = bytes(4) + bytes(2) + _plain("") + one + struct.pack(">b", 2) + topic + struct.pack(">b", 3) + one + acl
    producers = b"\0" + bytes(4) + b"\x02" + _compact("orders") + b"\x02" + struct.pack(">ih", 3, 0) + b"\0\x02"
    producers += struct.pack(">qiiqiq", 7, 4, 99, -1, 2, 100) + bytes(4)
    transaction = b"\0" + bytes(4) + b"\x02" + bytes(2) + _compact("mirror") + _compact("Ongoing")
    transaction += struct.pack(">iqqh", 60_000, -1, 7, 4) + b"\x02" + _compact("orders") + b"\x02" + bytes(7)
    names = b"\0" + bytes(4) + bytes(2) + b"\x01\x02" + _compact("mirror") + bytes(8) + _compact("Empty") + bytes(2)
    return (
        (data_protocol.parse_produce, produced),
        (_read_produced_by_id, produced_by_id),
        (topic_id_protocol.parse_topic_ids, topic_ids),
        (data_protocol.parse_log_dirs, log_dirs),
        (data_protocol.parse_list_end, list_end),
        (data_protocol.parse_local_log_start, local_start),
        (data_protocol.parse_epoch_ends, epochs),
        (_read_group_offsets, offsets),
        (group_protocol.parse_fetch_offsets, many_offsets),
        (group_protocol.parse_find_coordinators, coordinators),
        (_read_coordinator, coordinator),
        (_read_groups, groups),
        (_read_plain_groups, plain_groups),
        (group_protocol.parse_commit, commit),
        (acl_protocol.parse_describe_acls, acls),
        (transaction_protocol.parse_describe_producers, producers),
        (transaction_protocol.parse_describe_all_producers, producers),
        (transaction_protocol.parse_describe_transaction, transaction),
        (transaction_protocol.parse_list_transactions, names),
    )


def _read_produced_by_id(view: memoryview) -> Any:
    return data_protocol.parse_produce_by_id(view, {_TOPIC_ID: "orders"})


def _read_group_offsets(view: memoryview) -> Any:
    return group_protocol.parse_fetch_group_offsets(view, "billing")


def _read_coordinator(view: memoryview) -> Any:
    return group_protocol.parse_find_coordinator(view, "billing")


def _read_groups(view: memoryview) -> Any:
    return group_protocol.parse_list_groups(view, group_protocol.LIST_GROUPS_WITH_KINDS)


def _read_plain_groups(view: memoryview) -> Any:
    return group_protocol.parse_list_groups(view, group_protocol.PLAIN_LIST_GROUPS)


def _plain(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _compact(text: str) -> bytes:
    return bytes((len(text) + 1,)) + text.encode()


TARGETS = (FetchAnswers(), OtherAnswers())
