"""Transactions of writers that are open on the source of a cutover: a stopped writer leaves its transaction open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.raw.open_transactions import HiddenRecords, describe_hidden
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.errors import MirrorError
from mirror_lib.features.cutover import gates
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.model import Gate
from mirror_lib.features.cutover.scope import LogEnds
from mirror_lib.planning.aborted_records import aborted_notes, copied_transactions
from mirror_lib.planning.open_transactions import is_hanging, longest_transaction_seconds, shown_transaction
from mirror_lib.sync.admins import flow_admins
from mirror_lib.topology.names import TopicPartition

Open = Mapping[TopicPartition, HiddenRecords]


def open_transactions(flow: FlowConfig, ends: LogEnds) -> Open:
    """The oldest open transaction of each partition, as far as brokers describe it."""
    found = {place: HiddenRecords(ends.stable[place], ends.source[place]) for place in ends.open_transactions}
    return asyncio.run(_described(flow, found)) if found else {}


async def _described(flow: FlowConfig, found: Open) -> Open:
    connection = Connection.from_settings(flow.clients.data_consumer)
    try:
        async with open_clients(connection) as (client,):
            await client.refresh_leaders({place.topic for place in found})
            # Each of them, however young it is.
            return await describe_hidden(client, found, old_before=int((time.time() + 3600) * 1000))
    except MirrorError:
        return found


def before_the_writers_stop(flow: FlowConfig, found: Open) -> Gate:
    """Gate: no transaction stays open until an operator aborts it. Names all others, which their writers end."""
    hanging = _hanging(flow, found) if found else {}
    if hanging:
        return Gate(
            "transactions",
            False,
            f"transactions on the source that nobody ends: {_named(hanging)}",
            f"{_abort(hanging)} {_if_aborted(flow)}".strip(),
        )
    if not found:
        return Gate("transactions", True, "no open transactions on the source.")
    return Gate(
        "transactions",
        True,
        f"open on the source now: {_named(found)}. Stop writers only after they have ended their transactions: "
        f"those of a stopped writer stay open until their timeout, and the drain fails. {_if_aborted(flow)}".strip(),
    )


def at_the_end(flow: FlowConfig, found: Open) -> Gate:
    """Gate: every transaction has ended."""
    if not found:
        return Gate("transactions", True, "no open transactions on the source.")
    known = [each.timeout_ms for each in found.values() if each.is_coordinated and each.timeout_ms is not None]
    wait = f" (in at most {max(known) / 1000:,.0f} s)" if known else ""
    return Gate(
        "transactions",
        False,
        f"open transactions on the source: {_named(found)}",
        f"If their records are to count, let the writers commit them. Otherwise wait for their timeout{wait}, or start "
        f"the writers again, which aborts them. {_abort(found)} {_if_aborted(flow)}".strip(),
    )


def aborted_notes_of(context: CutoverContext) -> tuple[str, ...]:
    """What runs have counted of aborted and open transactions among the copied records of the scope."""
    flow = context.flow.flow
    copied = copied_transactions(context.ledger, flow, {topic.source for topic in context.topics}.__contains__)
    return tuple(aborted_notes(flow, copied))


def _hanging(flow: FlowConfig, found: Open) -> Open:
    with flow_admins(flow) as (source, _):
        longest = longest_transaction_seconds(source)
    now = time.time()
    return {place: each for place, each in found.items() if is_hanging(each, now=now, longest_seconds=longest)}


def _named(found: Open) -> str:
    now = time.time()
    return gates.first_places(
        f"{place} from offset {each.first}, {shown_transaction(each, now=now)}" for place, each in sorted(found.items())
    )


def _abort(found: Open) -> str:
    lost = sorted(place for place, each in found.items() if not each.is_coordinated)
    if not lost:
        return ""
    (topic, partition), first = lost[0], found[lost[0]].first
    return (
        "If `kafka-transactions.sh --bootstrap-server ... find-hanging --broker-id ...` shows it, no coordinator knows "
        "it: stop its producer, then `kafka-transactions.sh --bootstrap-server ... abort "
        f"--topic {topic} --partition {partition} --start-offset {first}` on the source."
    )


def _if_aborted(flow: FlowConfig) -> str:
    if flow.isolation_level is IsolationLevel.READ_COMMITTED:
        return ""
    return (
        "The flow copies uncommitted records, and the target keeps them if their transactions are aborted. Then only "
        "this makes both sides equal for read_committed consumers: roll the cutover back, set "
        f"`{flow.flow.source}.consumer.isolation.level = read_committed`, delete the topic on the target, copy it "
        "again with `mirror gaps recopy`, and start a new cutover with another name."
    )
