"""Replicated topics as Airflow assets, so that other DAGs run when there are new records."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mirror_lib.airflow.compatibility import Asset, AssetAlias
from mirror_lib.topology.names import FlowId

if TYPE_CHECKING:
    from mirror_lib.ledger.rows import PartitionRunRow

_log = logging.getLogger(__name__)

#: Airflow keeps events in its database forever: topics with more partitions report totals only.
_MOST_PARTITIONS = 1000


def topic_asset(cluster: str, topic: str) -> Asset:
    """Return the asset of a topic: `kafka://<cluster alias>/<topic>`, which is also its name.

    Airflow does not normalize the scheme `kafka`; the alias is used because broker addresses change.

    Args:
        cluster: its alias in the configuration file.
        topic: its name on that cluster.
    """
    return Asset(f"kafka://{quote(cluster, safe='')}/{quote(topic, safe='')}")


def flow_alias(flow: FlowId | str) -> AssetAlias:
    """Return the schedule of a DAG that is to run whenever any topic of a flow, written `A->B`, gets new records."""
    return AssetAlias(f"mirror {flow}")


@dataclass(frozen=True, slots=True)
class NewRecords:
    """New records of one target topic from one DAG run."""

    source_topic: str
    topic: str
    records: int
    bytes: int
    #: Partition -> target offsets [first, next) that hold the records.
    offsets: Mapping[int, tuple[int, int]]

    def extra(self, flow: str) -> dict[str, Any]:
        """Return the extra of the asset's event."""
        includes_offsets = len(self.offsets) <= _MOST_PARTITIONS
        return {
            "flow": flow,
            "source_topic": self.source_topic,
            "topic": self.topic,
            "records": self.records,
            "bytes": self.bytes,
            "partitions": len(self.offsets),
            "offsets": {str(partition): list(span) for partition, span in self.offsets.items()}
            if includes_offsets
            else {},
        }


def new_records(rows: Iterable[PartitionRunRow]) -> tuple[NewRecords, ...]:
    """Return the topics that got records, by name, over all rounds and attempts."""
    by_topic: dict[tuple[str, str], list[PartitionRunRow]] = {}
    for row in rows:
        if row.records:
            by_topic.setdefault((row.target_topic, row.topic), []).append(row)
    return tuple(_added_up(*names, group) for names, group in sorted(by_topic.items()))


def _added_up(topic: str, source_topic: str, rows: list[PartitionRunRow]) -> NewRecords:
    offsets: dict[int, tuple[int, int]] = {}
    for row in rows:
        first, following = offsets.get(row.partition, (row.target_first, row.target_next))
        offsets[row.partition] = min(first, row.target_first), max(following, row.target_next)
    return NewRecords(
        source_topic=source_topic,
        topic=topic,
        records=sum(row.records for row in rows),
        bytes=sum(row.bytes for row in rows),
        offsets=dict(sorted(offsets.items())),
    )
