"""Reads and writes the table `rate_claim`: the share of a cluster's limits that each current run has.

Flows run as independent processes, often on several hosts; they share only the ledger. A run claims its share before
each round and releases it afterwards. A claim is valid while its run holds the lock of its flow, so that a run that
died blocks others no longer than its lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection, Table, delete, insert, select, text

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import RateClaimRow, RateSide
from mirror_lib.ledger.tables import locks
from mirror_lib.ledger.tables.writing import now

_CLAIM: Table = METADATA.tables["rate_claim"]
#: Divisor: a run gets at least this part of its fair share, even if others have not released theirs yet.
LEAST_PART = 10


@dataclass(frozen=True, slots=True)
class RateAsk:
    """A limit that a run must keep: bytes per second of all flows that read from, or write to, a cluster."""

    side: RateSide
    cluster: str
    limit: int


def claim(
    connection: Connection, *, flow: str, run_id: str, wanted: int | None, asks: Sequence[RateAsk]
) -> tuple[RateClaimRow, ...]:
    """Replace a run's claims by new ones, for all limits that it must keep.

    The run holds its flow's lock. All claims have the same value: the lowest that one of the limits allows.

    Args:
        connection: in a write transaction.
        flow: the run's flow.
        run_id: the run.
        wanted: bytes per second that it could use; None means unlimited.
        asks: the limits, each side of a cluster at most once.
    """
    if connection.dialect.name == "postgresql":
        # SQLite serializes write transactions itself.
        connection.execute(text("LOCK TABLE rate_claim IN EXCLUSIVE MODE"))
    others = [row for row in live_claims(connection) if row.flow != flow]
    release(connection, flow=flow)
    fair = {ask: fair_share(ask.limit, wanted, [row.wanted for row in _of(ask, others)]) for ask in asks}
    granted = min(grant(ask.limit, fair[ask], [row.bytes_per_second for row in _of(ask, others)]) for ask in asks)
    at = now()
    claims = [
        RateClaimRow(
            flow=flow,
            side=ask.side,
            cluster=ask.cluster,
            run_id=run_id,
            # The part that another limit prevents it from using is free for others.
            wanted=_least([wanted, *(fair[other] for other in asks if other != ask)]),
            bytes_per_second=granted,
            claimed_at=at,
        )
        for ask in asks
    ]
    if claims:
        connection.execute(insert(_CLAIM), [asdict(row) for row in claims])
    return tuple(claims)


def release(connection: Connection, *, flow: str, run_id: str | None = None) -> None:
    """Release a flow's claims; only those of a run, if one is given."""
    ours = _CLAIM.c.flow == flow
    connection.execute(delete(_CLAIM).where(ours if run_id is None else ours & (_CLAIM.c.run_id == run_id)))


def live_claims(connection: Connection) -> tuple[RateClaimRow, ...]:
    """The shares of cluster limits that current runs hold: those of runs that hold the locks of their flows."""
    rows = [RateClaimRow(**row) for row in connection.execute(select(_CLAIM).order_by(_CLAIM.c.flow)).mappings()]
    holders = {flow: locks.find(connection, flow) for flow in {row.flow for row in rows}}
    return tuple(
        replace(row, side=RateSide(row.side))
        for row in rows
        if (holder := holders[row.flow]) is not None and holder.run_id == row.run_id
    )


def fair_share(limit: int, wanted: int | None, others: Sequence[int | None]) -> int:
    """One member's share of a limit, max-min fair: no member gets more than it wants; the others share the rest.

    None wants as much as possible. The shares of all members add up to the limit, or to the wanted total if that is
    less; each is at least 1.
    """
    left, members = limit, len(others) + 1
    for want in sorted(each for each in (wanted, *others) if each is not None):
        if want * members > left:
            break
        left -= want
        members -= 1
        if want == wanted:
            return max(want, 1)
    # All remaining members want at least this.
    return max(left // members if members else left, 1)


def grant(limit: int, fair: int, granted: Iterable[int]) -> int:
    """A run's current grant: the unclaimed part of its fair share, but at least a tenth of it."""
    unclaimed = limit - sum(granted)
    return min(fair, max(unclaimed, fair // LEAST_PART, 1))


def _of(ask: RateAsk, rows: Iterable[RateClaimRow]) -> list[RateClaimRow]:
    return [row for row in rows if (row.side, row.cluster) == (ask.side, ask.cluster)]


def _least(wants: Iterable[int | None]) -> int | None:
    return min((want for want in wants if want is not None), default=None)
