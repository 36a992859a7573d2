"""Rows that go elsewhere are summed up by where they go; those that stay keep their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow.rows import KAFKA_SCHEMA
from mirror_lib.features.transforms.model import ColumnExpressions, Transform, TransformChain
from mirror_lib.features.transforms.rows.columns import RowColumns, by_place
from mirror_lib.features.transforms.rows.layout import SOURCE_COLUMN, with_source
from mirror_lib.features.verify.model import (
    NOT_COMPARED,
    UNEXPECTED,
    CheckRange,
    KnownGap,
    KnownRoute,
    PartitionCheck,
    RoutedCheck,
    RoutedPlan,
    Share,
)
from mirror_lib.features.verify.routed.findings import Place
from mirror_lib.features.verify.routed.multiset import Multiset, record_digests
from mirror_lib.features.verify.routed.routed_rows import Elsewhere
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.partitions import verify_job

SOURCE, OWN = TopicPartition("payments", 2), TopicPartition("A.payments", 2)
DE = TopicPartition("payments.de", 2)
KEY = b"any key"
#: Source offset, topic and partition that a transform sets.
Sent = tuple[int, str | None, int | None]


def check(**changes: Any) -> PartitionCheck:
    settings: dict[str, Any] = {
        "source": SOURCE,
        "target": OWN,
        "ranges": (CheckRange(0, 100, 0, 0, records=0, encoded_runs=b""),),
        "target_end": 0,
        "chain": TransformChain((Transform("away", columns=ColumnExpressions(topic="'x'")),)),
    }
    return PartitionCheck(**{**settings, **changes})


def elsewhere(known: Sequence[KnownRoute] = (), covered: Sequence[Share] = (), *, timed: bool = True) -> Elsewhere:
    plan = RoutedPlan((RoutedCheck(target=DE, timed=timed),), tuple(known), tuple(covered))
    return Elsewhere(verify_job(routed=plan, digest_key=KEY))


def batch_of(sent: Sequence[Sent]) -> pa.RecordBatch:
    records = [
        {
            "key": b"key",
            "value": b"value %d" % offset,
            "topic": SOURCE.topic,
            "partition": SOURCE.partition,
            "offset": offset,
            "timestamp": offset * 1_000,
            "timestampType": 0,
            "headers": [{"key": "trace", "value": b"%d" % offset}],
        }
        for offset, _, _ in sent
    ]
    read = with_source(pa.RecordBatch.from_pylist(records, KAFKA_SCHEMA), 0)
    names = ("key", "value", "headers", "timestamp")
    where = pa.array([topic for _, topic, _ in sent], pa.string()), pa.array([to for _, _, to in sent], pa.int32())
    columns = [*(read.column(name) for name in names), *where, read.column(SOURCE_COLUMN)]
    return pa.RecordBatch.from_arrays(columns, [*names, "topic", "partition", SOURCE_COLUMN])


def columns_of(batch: pa.RecordBatch) -> RowColumns:
    (rows,) = by_place(batch, routes=False)
    return rows.rows


def heap_of(offsets: Sequence[int], *, timed: bool = True) -> Multiset:
    found = Multiset()
    if offsets:
        tails = columns_of(batch_of([(offset, None, None) for offset in offsets])).tails()
        ends = tails.ends.tolist()
        parts = [tails.content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        found.add(record_digests(KEY, tails.times.tolist() if timed else None, parts))
    return found


def told(found: Elsewhere) -> dict[Place, int]:
    return {place: heap.count for place, heap in found.findings.made.items()}


ALL = Share(SOURCE, 0, 100)


@given(
    sent=st.lists(st.sampled_from([(None, None), (OWN.topic, OWN.partition), (DE.topic, None), (None, 0)]), max_size=30)
)
def test_each_row_stays_or_is_summed_up_where_it_goes(sent: list[tuple[str | None, int | None]]) -> None:
    rows = [(offset, *where) for offset, where in enumerate(sent)]
    if not rows:
        return
    zero = TopicPartition(OWN.topic, 0)
    parting = elsewhere([KnownRoute(ALL, DE, 4), KnownRoute(ALL, zero, 5)], [ALL])
    batch = batch_of(rows)

    own = parting.without(check(), columns_of(batch), batch)

    goes = {
        target: [o for o, t, p in rows if (t, p) == where]
        for target, where in ((DE, (DE.topic, None)), (zero, (None, 0)))
    }
    assert own.offsets.tolist() == [o for o, t, p in rows if (t, p) in ((None, None), tuple(OWN))]
    for target, number in ((DE, 4), (zero, 5)):
        made = parting.findings.made.get((target, number), Multiset())
        assert made.same_as(heap_of(goes[target]))
    assert sum(told(parting).values()) == len(goes[DE]) + len(goes[zero])


def test_rows_are_told_apart_by_the_stretch_of_their_offset() -> None:
    known = [KnownRoute(Share(SOURCE, 0, 10), DE, 0), KnownRoute(Share(SOURCE, 10, 20), DE, NOT_COMPARED)]
    parting = elsewhere([*known, KnownRoute(Share(SOURCE, 30, 40), DE, 2)], [Share(SOURCE, 0, 50)])
    batch = batch_of([(offset, DE.topic, None) for offset in (3, 9, 10, 19, 20, 30, 39, 40, 50, 51)])

    own = parting.without(check(), columns_of(batch), batch)

    assert len(own) == 0
    # 20 and 40 lie where the ledger says that nothing went there; 50 and 51 where it says nothing.
    assert told(parting) == {(DE, 0): 2, (DE, 2): 2, (DE, UNEXPECTED): 2}
    assert sum(parting.findings.unknown.values()) == 2


def test_what_the_ledger_names_as_left_out_is_counted_apart() -> None:
    parting = elsewhere([KnownRoute(ALL, DE, 0)], [ALL])
    batch = batch_of([(offset, DE.topic, None) for offset in range(10)])

    parting.without(check(known_gaps=(KnownGap(3, 5, "record-too-large"),)), columns_of(batch), batch)

    assert parting.findings.made[DE, 0].same_as(heap_of([0, 1, 2, 5, 6, 7, 8, 9]))
    assert parting.findings.doubtful[DE, 0].same_as(heap_of([3, 4]))


def test_rows_of_the_own_target_are_summed_up_as_well_where_others_meet_them() -> None:
    for known in ([KnownRoute(ALL, OWN, 0)], []):
        parting = elsewhere(known, [ALL])
        batch = batch_of([(0, None, None), (1, DE.topic, None), (2, OWN.topic, None)])

        own = parting.without(check(), columns_of(batch), batch)

        assert own.offsets.tolist() == [0, 2]
        assert ((OWN, 0) in parting.findings.made) is bool(known)


def test_where_the_target_has_times_of_its_own_they_do_not_count() -> None:
    parting = elsewhere([KnownRoute(ALL, DE, 0)], [ALL], timed=False)
    batch = batch_of([(offset, DE.topic, None) for offset in range(5)])

    parting.without(check(), columns_of(batch), batch)

    assert parting.findings.made[DE, 0].same_as(heap_of(range(5), timed=False))


def test_records_are_found_again_by_their_digests() -> None:
    parting = elsewhere([KnownRoute(ALL, DE, 0)], [ALL])
    batch = batch_of([(offset, DE.topic if offset % 2 else None, None) for offset in range(10)])
    (surplus,) = heap_of([7]).surplus() or ()

    found = list(parting.find(check(), columns_of(batch), batch, {(DE, 0): frozenset({surplus.digest})}))

    assert [(each.target, each.span, each.source, each.offset) for each in found] == [(DE, 0, SOURCE, 7)]
