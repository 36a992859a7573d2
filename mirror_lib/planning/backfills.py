"""What a flow knows of the backfills next to it, which a feature makes: their ids, and commands for messages."""

from __future__ import annotations

from mirror_lib.errors import Where
from mirror_lib.topology.names import FlowId, TopicPartition

#: Value of `--from` for the records that were written after a cutover.
FROM_CUTOVER = "cutover"


def backfill_id(flow: FlowId, name: str) -> FlowId:
    """The id that names the lock, the writers and the ledger rows of a flow's backfill."""
    return FlowId(flow.source, flow.target, f"backfill-{name}")


def again(flow: FlowId, name: str, *more: str) -> str:
    """The command that repeats a backfill, for messages."""
    plain = FlowId(flow.source, flow.target)
    words = ("mirror backfill run", f"--flow '{plain}'", f"--name {name}", *more)
    return f"`{' '.join(words)}`"


def or_dag(name: str, accept: str = "") -> str:
    """How to repeat it in Airflow, for messages."""
    return f"or trigger the flow's backfill DAG with the name {name}{accept}"


def let_flow_continue(flow: FlowId, source: TopicPartition, offset: int) -> str:
    """How a flow continues after the end of its target."""
    where = Where(flow=str(FlowId(flow.source, flow.target)), topic=source.topic, partition=source.partition)
    return f"{where.position_set(offset)} lets the flow continue there."
