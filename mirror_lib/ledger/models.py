"""The ledger's tables, each with the row whose fields are its columns.

Migrations create them; a test keeps the two equal. Two have rows in features.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, Table

from mirror_lib.ledger.cutover_rows import CutoverRow, CutRow, HandedOverRow
from mirror_lib.ledger.metadata import METADATA, StoredJson, StoredText, column, key, optional, table_of
from mirror_lib.ledger.observed_rows import (
    AuditRow,
    FlowObservationRow,
    GroupObservationRow,
    HeartbeatObservationRow,
    PartitionObservationRow,
    StepOutcomeRow,
)
from mirror_lib.ledger.offset_rows import PositionRow, SegmentRow, TransactionCountRow
from mirror_lib.ledger.rows import (
    ClusterPairRow,
    GapRow,
    KnownTopicsRow,
    PartitionRunRow,
    RateClaimRow,
    ReplicatedAclRow,
    RoundRow,
    RunLockRow,
    RunRow,
    SyncTimeRow,
)

__all__ = ["METADATA"]

table_of(
    RunRow,
    "run",
    CheckConstraint("state IN ('running', 'succeeded', 'partial', 'failed')", name="state"),
    Index(None, "flow", "started_at"),
    Index(None, "trigger"),
    keys=("id",),
)
table_of(
    PartitionRunRow,
    "partition_run",
    CheckConstraint("state IN ('planned', 'copying', 'done', 'failed')", name="state"),
    keys=("run_id", "topic", "partition", "round"),
    part_of="run.id",
    texts=("detail",),
)
table_of(
    RoundRow,
    "round",
    Index(None, "flow", "began_at"),
    Index(None, "flow", "heaviest_bytes"),
    keys=("run_id", "number"),
    part_of="run.id",
)
table_of(
    PositionRow,
    "position",
    CheckConstraint("state IN ('open', 'closed')", name="state"),
    keys=("flow", "topic", "partition"),
)
table_of(SegmentRow, "offset_segment", keys=("flow", "topic", "partition", "source_first"))
table_of(TransactionCountRow, "transaction_count", keys=("flow", "topic", "partition"))
table_of(ClusterPairRow, "cluster_pair", keys=("flow",))
table_of(KnownTopicsRow, "known_topics", keys=("flow",), texts=("topics",))
table_of(RunLockRow, "run_lock", keys=("flow",))
table_of(RateClaimRow, "rate_claim", CheckConstraint("side IN ('read', 'write')", name="side"), keys=("flow", "side"))
table_of(
    GapRow,
    "gap",
    CheckConstraint("state IN ('open', 'accepted', 'recopied', 'stopped')", name="state"),
    Index(None, "flow", "state"),
    keys=("id",),
    texts=("detail", "note"),
)
table_of(
    ReplicatedAclRow,
    "replicated_acl",
    CheckConstraint("kind IN ('copied', 'staged')", name="kind"),
    CheckConstraint("state IN ('waiting', 'creating', 'created')", name="state"),
    keys=("flow", "resource", "name", "pattern", "principal", "host", "operation", "permission"),
)
table_of(SyncTimeRow, "sync_time", keys=("flow", "step"))

# See `rows.VerificationRow`.
Table(
    "verification",
    METADATA,
    key("id", str),
    column("flow", str),
    key("topic", str),
    key("partition", int),
    column("target_topic", str),
    column("mode", str),
    column("verdict", str),
    optional("reason", str),
    optional("detail", StoredText()),
    optional("source_first", int),
    optional("source_next", int),
    optional("target_first", int),
    optional("target_next", int),
    column("records", int),
    column("bytes", int),
    optional("digest", str),
    column("difference_count", int),
    optional("differences", StoredJson(none_as_null=True)),
    optional("copy", str),
    column("started_at", datetime),
    column("finished_at", datetime),
    CheckConstraint("mode IN ('full', 'sample', 'recent', 'state')", name="mode"),
    CheckConstraint("verdict IN ('equal', 'different', 'unverifiable')", name="verdict"),
    Index(None, "flow", "topic", "partition", "finished_at"),
)
table_of(CutoverRow, "cutover", Index(None, "flow", "created_at"), keys=("name",))

# See `cutover_rows.CutoverStepRow`.
Table(
    "cutover_step",
    METADATA,
    key("cutover", str, ForeignKey("cutover.name", ondelete="CASCADE")),
    key("step", str),
    key("attempt", int),
    column("state", str),
    column("gates", StoredJson()),
    column("facts", StoredJson()),
    column("by", str),
    column("started_at", datetime),
    optional("finished_at", datetime),
    optional("error", StoredJson(none_as_null=True)),
)
table_of(CutRow, "cut", keys=("cutover", "topic", "partition"), part_of="cutover.name")
table_of(HandedOverRow, "handed_over_topic", keys=("flow", "topic"))
table_of(FlowObservationRow, "flow_observation", keys=("flow", "observed_at"), stored={"duplicates": "read_again"})
table_of(PartitionObservationRow, "partition_observation", keys=("flow", "topic", "partition"), texts=("detail",))
table_of(
    GroupObservationRow,
    "group_observation",
    keys=("flow", "group", "topic", "partition"),
    texts=("what",),
    stored={"target_offset": "goes_on_at", "duplicates": "read_again"},
)
table_of(HeartbeatObservationRow, "heartbeat_observation", keys=("flow", "pair"), texts=("detail",))
table_of(StepOutcomeRow, "step_outcome", keys=("flow", "step"), texts=("skipped",))
table_of(AuditRow, "audit", Index(None, "flow", "at"), keys=("id",))
