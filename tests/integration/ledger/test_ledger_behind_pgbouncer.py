"""A ledger behind PgBouncer in transaction mode, as companies have it: a statement may run on any connection."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mirror_lib.ledger.store import Ledger
from tests.support.ledger.pgbouncer import pgbouncer
from tests.support.ledger.postgres import postgres_server

FLOWS = ("A->B", "B->C", "C->D", "D->E")


def test_given_more_processes_than_connections_when_they_renew_locks_then_no_renewal_fails() -> None:
    def hold(flow: str, url: str) -> list[bool]:
        with Ledger.open(url) as ledger:
            ledger.acquire_lock(flow=flow, run_id=flow, holder="test", lease_seconds=60)
            return [ledger.renew_lock(flow=flow, run_id=flow, holder="test") for _ in range(30)]

    with postgres_server() as server, pgbouncer(server, connections=2) as url:
        with Ledger.open(url) as ledger:
            ledger.migrate()
        with ThreadPoolExecutor(len(FLOWS)) as pool:
            renewed = list(pool.map(hold, FLOWS, [url] * len(FLOWS)))

    assert renewed == [[True] * 30] * len(FLOWS)
