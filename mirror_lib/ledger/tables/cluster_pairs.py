"""Reads and writes the table `cluster_pair`: the clusters that the rows of a flow belong to.

All other tables identify a flow by its aliases, and an alias may name another cluster later. Rows of other clusters
stay in the ledger under a name that no flow has.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Table, TableClause, case, delete, func, or_, select, update

from mirror_lib.ledger.database import Database
from mirror_lib.ledger.feature_tables import tables_with_flows, with_flow
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import ClusterPairRow
from mirror_lib.ledger.tables.writing import insert_new, now, upsert

_PAIRS: Table = METADATA.tables["cluster_pair"]
#: Tables of history: their rows are kept. Those that features have made by their own migrations are found.
_KEPT = (
    "run",
    "round",
    "position",
    "offset_segment",
    "transaction_count",
    "routed_range",
    "gap",
    "replicated_acl",
    "backfill",
    "verification",
    "cutover",
    "handed_over_topic",
)
#: Tables of current state: their rows are deleted.
_DELETED = (
    "known_topics",
    "sync_time",
    "rate_claim",
    "flow_observation",
    "partition_observation",
    "group_observation",
    "heartbeat_observation",
    "step_outcome",
)


class ClusterPairs:
    """Pairs of cluster ids by flow. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, flow: str) -> ClusterPairRow | None:
        """The clusters that a flow's rows belong to; None if they are not known yet."""
        with self._database.read() as connection:
            found = connection.execute(select(_PAIRS).where(_PAIRS.c.flow == flow)).mappings().one_or_none()
            return None if found is None else ClusterPairRow(**found)

    def between(self, source_id: str, target_id: str) -> tuple[str, ...]:
        """The flows whose rows belong to these clusters, with any aliases."""
        query = select(_PAIRS.c.flow).where(_PAIRS.c.source_id == source_id, _PAIRS.c.target_id == target_id)
        with self._database.read() as connection:
            return tuple(connection.scalars(query.order_by(_PAIRS.c.flow)))

    def keep(self, flow: str, source_id: str, target_id: str) -> ClusterPairRow:
        """Store a flow's clusters unless they are known; return the stored ones."""
        row = ClusterPairRow(flow=flow, source_id=source_id, target_id=target_id, since=now())
        with self._database.write() as connection:
            insert_new(connection, _PAIRS, row)
            return ClusterPairRow(**connection.execute(select(_PAIRS).where(_PAIRS.c.flow == flow)).mappings().one())

    def replace(self, flow: str, source_id: str, target_id: str, *, by: str) -> None:
        """Assign the rows of a flow to these clusters."""
        row = ClusterPairRow(flow=flow, source_id=source_id, target_id=target_id, since=now(), by=by)
        with self._database.write() as connection:
            upsert(connection, _PAIRS, [row])

    def begin_anew(self, flow: str, source_id: str, target_id: str, *, by: str) -> str | None:
        """Set aside all rows of a flow and of its backfills, and store its new clusters.

        Returns:
            The name under which the earlier rows are kept; None if no earlier clusters are known.
        """
        row = ClusterPairRow(flow=flow, source_id=source_id, target_id=target_id, since=now(), by=by)
        with self._database.write() as connection:
            found = connection.execute(select(_PAIRS).where(_PAIRS.c.flow == flow)).mappings().one_or_none()
            former = None if found is None else ClusterPairRow(**found)
            aside = None
            if former is not None:
                # A flow may leave a pair of clusters and return to it more than once.
                aside = f"{flow} ({former.source_id} -> {former.target_id}, until {row.since:%Y-%m-%dT%H:%M:%S.%fZ})"
                _set_aside(connection, flow, aside)
            upsert(connection, _PAIRS, [row])
            return aside


def _set_aside(connection: Connection, flow: str, aside: str) -> None:
    # A feature that is not installed here keeps its rows, which must not be read of other clusters later.
    for each in (*map(with_flow, _KEPT), *tables_with_flows(connection)):
        renamed = aside + func.substr(each.c.flow, len(flow) + 1)
        connection.execute(
            update(each).where(_of_flow(each, flow)).values(flow=case((each.c.flow == flow, aside), else_=renamed))
        )
    for each in map(with_flow, _DELETED):
        connection.execute(delete(each).where(_of_flow(each, flow)))


def _of_flow(table: TableClause, flow: str) -> ColumnElement[bool]:
    """Rows of the flow itself and of its backfills."""
    return or_(table.c.flow == flow, table.c.flow.startswith(f"{flow}#", autoescape=True))
