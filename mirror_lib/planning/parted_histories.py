"""Where a source that lost copied records begins to have others: found by comparing it with the copies.

A source that was restored from a snapshot has other records from the snapshot's end on, perhaps with the same leader
epochs, and perhaps fewer than before: then no record of the position is left to compare. The offset map knows the copy
of each record. Both histories are the same up to some record, so a search by halves reads few of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.errors import SourceTruncatedError
from mirror_lib.identity.last_records import read_records_at
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.run_columns import Offsets, RunColumns
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import PartitionFacts
from mirror_lib.planning.source_losses import find_loss
from mirror_lib.topology.names import FlowId, TopicPartition

_FAR = 1 << 62


@dataclass(slots=True)
class _Search:
    """The search in one partition: copied records in order, known to be the same up to `same`, and not from `other`."""

    fact: PartitionFacts
    map: RunColumns
    #: Number of records before the end of each run.
    ends: Offsets
    other: int
    same: int = -1

    @property
    def is_finished(self) -> bool:
        return self.other - self.same <= 1

    def offsets(self, record: int) -> tuple[int, int]:
        """Source and target offset of a copied record."""
        run = int(np.searchsorted(self.ends, record, side="right"))
        within = record - int(self.ends[run] - self.map.count[run])
        return int(self.map.source_first[run]) + within, int(self.map.target_first[run]) + within

    @property
    def next(self) -> int:
        """The record to compare: the last one first, since most logs have only lost their end."""
        return self.other - 1 if self.other == self.map.records else (self.same + self.other) // 2

    def answered(self, *, is_same: bool) -> None:
        if is_same:
            self.same = self.next
        else:
            self.other = self.next

    @property
    def same_to(self) -> int:
        return self.fact.log_start if self.same < 0 else self.offsets(self.same)[0] + 1


def with_parted_histories(
    flow: FlowId, facts: list[PartitionFacts], clusters: FlowClusters, ledger: Ledger
) -> list[PartitionFacts]:
    """The facts, with `same_to` of partitions whose source lost copied records.

    Raises:
        MirrorError: a cluster or the ledger does not respond.
    """
    searches = {
        fact.source: _search(flow, fact, ledger)
        for fact in facts
        if not fact.stopped
        and (loss := find_loss(flow, fact)) is not None
        and isinstance(loss.error, SourceTruncatedError)
    }
    if not searches:
        return facts
    asyncio.run(_compare(list(searches.values()), clusters))
    return [replace(fact, same_to=searches[fact.source].same_to) if fact.source in searches else fact for fact in facts]


def _search(flow: FlowId, fact: PartitionFacts, ledger: Ledger) -> _Search:
    whole = RunColumns.of_segments(ledger.segments(str(flow), *fact.source))
    end = min(fact.log_end, fact.position or 0)
    if fact.leader_epoch_end is not None and fact.leader_epoch_end >= 0:
        # From there on the leader itself says that they are others.
        end = min(end, fact.leader_epoch_end)
    there = whole.before(source=end, target=_FAR).behind(source=fact.log_start, target=0)
    return _Search(fact, there, np.cumsum(there.count), there.records)


async def _compare(searches: Sequence[_Search], clusters: FlowClusters) -> None:
    async with open_clients(clusters.source_data, clusters.target_data) as (source, target):
        while open_ := [each for each in searches if not each.is_finished]:
            # Several source partitions may share a target partition, of which a request reads one record.
            for part in _with_different_targets(open_):
                # A target that replaces timestamps shows nothing; a source's are those of the copies.
                offsets = {each.fact.source: each.offsets(each.next)[0] for each in part}
                here = await _checksums(source, offsets, append_times=True)
                offsets = {each.fact.target: each.offsets(each.next)[1] for each in part}
                there = await _checksums(target, offsets, append_times=False)
                for each in part:
                    # What one side lacks, or cannot show, is not known to be the same.
                    each.answered(is_same=here.get(each.fact.source, -1) == there.get(each.fact.target))


async def _checksums(
    client: RawClient, offsets: Mapping[TopicPartition, int], *, append_times: bool
) -> dict[TopicPartition, int]:
    found = await read_records_at(client, offsets, append_times=append_times)
    return {partition: record.checksum for partition, record in found.items()}


def _with_different_targets(searches: Iterable[_Search]) -> list[list[_Search]]:
    parts: list[dict[TopicPartition, _Search]] = []
    for each in searches:
        part = next((part for part in parts if each.fact.target not in part), None)
        if part is None:
            parts.append(part := {})
        part[each.fact.target] = each
    return [list(part.values()) for part in parts]
