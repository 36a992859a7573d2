"""Facts, plans and results of partitions, and verifications of them, with usual values where a test sets none."""

from __future__ import annotations

from typing import Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.features.verify.model import VerifyFacts, VerifyJob
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.planning.model import PartitionFacts, PartitionPlan, PartitionResult
from mirror_lib.topology.names import FlowId, TopicPartition


def partition_facts(topic: str = "orders", partition: int = 0, **changed: Any) -> PartitionFacts:
    """A partition of 100 records that was never copied."""
    usual = {
        "source": TopicPartition(topic, partition),
        "target": TopicPartition(f"A.{topic}", partition),
        "log_start": 0,
        "log_end": 100,
        "topic_id": "id-1",
        "position": None,
        "position_topic_id": None,
        "log_bytes": None,
        "target_max_message_bytes": 1_048_588,
    }
    return PartitionFacts(**(usual | changed))


def partition_plan(topic: str = "orders", partition: int = 0, **changed: Any) -> PartitionPlan:
    """A partition whose first 100 offsets are to be copied."""
    usual = {
        "source": TopicPartition(topic, partition),
        "target": TopicPartition(f"A.{topic}", partition),
        "start": 0,
        "end": 100,
        "topic_id": "id-1",
        "target_max_message_bytes": 1_048_588,
        "estimated_bytes": 0,
    }
    return PartitionPlan(**(usual | changed))


def partition_result(plan: PartitionPlan | None = None, **changed: Any) -> PartitionResult:
    """The result of a plan that was carried out, into an empty target and without a map."""
    plan = plan or partition_plan()
    usual = {
        "source": plan.source,
        "target": plan.target,
        "start": plan.start,
        "end": plan.end,
        "source_next": plan.end,
        "target_first": 0,
        "target_next": plan.end - plan.start,
        "records": plan.end - plan.start,
        "bytes": 1_000,
        "batches": 1,
        "first_timestamp": None,
        "last_timestamp": None,
        "seconds": 1.0,
        "runs": (),
    }
    return PartitionResult(**(usual | changed))


def verify_facts(
    topic: str = "orders", partition: int = 0, *, runs: tuple[OffsetRun, ...] = (), **changed: Any
) -> VerifyFacts:
    """A partition whose logs begin at offset 0 and end where its map does, while a run may be writing."""
    usual: dict[str, Any] = {
        "source": TopicPartition(topic, partition),
        "target": TopicPartition(f"A.{topic}", partition),
        "source_start": 0,
        "source_end": runs[-1].source_next if runs else 0,
        "target_start": 0,
        "target_end": runs[-1].target_next if runs else 0,
    }
    return VerifyFacts(runs=runs, **(usual | changed))


def verify_job(**changed: Any) -> VerifyJob:
    """A verification of the flow A->B that reads nothing yet."""
    here = Connection("B", ("localhost:1",))
    usual: dict[str, Any] = {
        "flow": FlowId("A", "B"),
        "source": here,
        "target": here,
        "read_committed": False,
        "bins": (),
    }
    return VerifyJob(**(usual | changed))
