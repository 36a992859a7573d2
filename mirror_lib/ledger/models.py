"""The ledger's tables. Migrations create them; a test keeps the two equal."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, Table

# Importing a module registers its tables; importing this module registers all of them.
from mirror_lib.ledger import observed_models  # noqa: F401
from mirror_lib.ledger.metadata import METADATA, StoredJson, StoredText, column, key, optional

__all__ = ["METADATA"]

# See `rows.RunRow`.
Table(
    "run",
    METADATA,
    key("id", str),
    column("flow", str),
    column("trigger", str),
    column("state", str),
    column("started_at", datetime),
    optional("finished_at", datetime),
    column("rounds", int),
    column("planned_partitions", int),
    column("records", int),
    column("bytes", int),
    optional("error", StoredJson(none_as_null=True)),
    column("heartbeat_at", datetime),
    CheckConstraint("state IN ('running', 'succeeded', 'partial', 'failed')", name="state"),
    Index(None, "flow", "started_at"),
    Index(None, "trigger"),
)

# See `rows.PartitionRunRow`.
Table(
    "partition_run",
    METADATA,
    key("run_id", str, ForeignKey("run.id", ondelete="CASCADE")),
    key("topic", str),
    key("partition", int),
    key("round", int),
    column("target_topic", str),
    column("start_offset", int),
    column("end_offset", int),
    column("source_next", int),
    column("target_first", int),
    column("target_next", int),
    column("records", int),
    column("bytes", int),
    column("batches", int),
    optional("first_timestamp", int),
    optional("last_timestamp", int),
    column("seconds", float),
    column("state", str),
    optional("reason", str),
    optional("detail", StoredText()),
    column("updated_at", datetime),
    CheckConstraint("state IN ('planned', 'copying', 'done', 'failed')", name="state"),
)

# See `rows.RoundRow`.
Table(
    "round",
    METADATA,
    key("run_id", str, ForeignKey("run.id", ondelete="CASCADE")),
    key("number", int),
    column("flow", str),
    column("began_at", datetime),
    column("planning_seconds", float),
    column("opening_seconds", float),
    column("copying_seconds", float),
    column("committing_seconds", float),
    column("tasks", int),
    column("partitions", int),
    column("records", int),
    column("bytes", int),
    column("heaviest_bytes", int),
    column("lag_records", int),
    optional("lag_bytes", int),
    column("planned_records", int),
    optional("planned_bytes", int),
    optional("expected_bytes", int),
    optional("expected_seconds", float),
    optional("oldest_age_ms", int),
    optional("newest_age_ms", int),
    optional("committed_at", datetime),
    Index(None, "flow", "began_at"),
    Index(None, "flow", "heaviest_bytes"),
)

# See `offset_rows.PositionRow`. The run may be one of another ledger: positions come from Kafka.
Table(
    "position",
    METADATA,
    key("flow", str),
    key("topic", str),
    key("partition", int),
    column("offset", int),
    optional("target_offset", int),
    column("state", str),
    optional("producer_id", int),
    optional("epoch", int),
    optional("run_id", str),
    optional("topic_id", str),
    optional("claim", int),
    optional("copy", str),
    column("updated_at", datetime),
    CheckConstraint("state IN ('open', 'closed')", name="state"),
)

# See `offset_rows.SegmentRow`. Segments of a partition ascend on both sides and outlive the runs that wrote them.
Table(
    "offset_segment",
    METADATA,
    key("flow", str),
    key("topic", str),
    key("partition", int),
    key("source_first", int),
    column("source_next", int),
    column("target_first", int),
    column("target_next", int),
    column("records", int),
    optional("runs", bytes),
    column("run_id", str),
)

# See `offset_rows.TransactionCountRow`.
Table(
    "transaction_count",
    METADATA,
    key("flow", str),
    key("topic", str),
    key("partition", int),
    optional("copy", str),
    column("counted_to", int),
    column("aborted", int),
    column("undecided", int),
    column("uncounted", int),
    column("open", StoredJson()),
    column("updated_at", datetime),
)

# See `rows.ClusterPairRow`.
Table(
    "cluster_pair",
    METADATA,
    key("flow", str),
    column("source_id", str),
    column("target_id", str),
    column("since", datetime),
    optional("by", str),
)

# The topics that the source of a flow had at its last run: a name in each line.
Table(
    "known_topics",
    METADATA,
    key("flow", str),
    column("topics", StoredText()),
    column("updated_at", datetime),
)

# See `rows.RunLockRow`. A flow without a row is free.
Table(
    "run_lock",
    METADATA,
    key("flow", str),
    column("run_id", str),
    column("holder", str),
    column("acquired_at", datetime),
    column("renewed_at", datetime),
    column("lease_seconds", float),
)

# See `rows.RateClaimRow`.
Table(
    "rate_claim",
    METADATA,
    key("flow", str),
    key("side", str),
    column("cluster", str),
    column("run_id", str),
    optional("wanted", int),
    column("bytes_per_second", int),
    column("claimed_at", datetime),
    CheckConstraint("side IN ('read', 'write')", name="side"),
)

# See `rows.GapRow`.
Table(
    "gap",
    METADATA,
    key("id", str),
    column("flow", str),
    column("topic", str),
    column("partition", int),
    column("cause", str),
    column("first_offset", int),
    column("next_offset", int),
    optional("records", int),
    optional("first_time", datetime),
    optional("last_time", datetime),
    optional("topic_id", str),
    column("detail", StoredText()),
    optional("run_id", str),
    column("found_at", datetime),
    column("state", str),
    optional("decided_by", str),
    optional("decided_at", datetime),
    optional("note", StoredText()),
    CheckConstraint("state IN ('open', 'accepted', 'recopied', 'stopped')", name="state"),
    Index(None, "flow", "state"),
)

# See `rows.ReplicatedAclRow`.
Table(
    "replicated_acl",
    METADATA,
    key("flow", str),
    key("resource", str),
    key("name", str),
    key("pattern", str),
    key("principal", str),
    key("host", str),
    key("operation", str),
    key("permission", str),
    column("kind", str),
    column("state", str),
    column("withdrawn", bool),
    column("changed_at", datetime),
    column("changed_by", str),
    CheckConstraint("kind IN ('copied', 'staged')", name="kind"),
    CheckConstraint("state IN ('waiting', 'creating', 'created')", name="state"),
)

# When the last successful run of a step with its own interval began.
Table(
    "sync_time",
    METADATA,
    key("flow", str),
    key("step", str),
    column("begun_at", datetime),
)

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

# See `cutover_rows.CutoverRow`.
Table(
    "cutover",
    METADATA,
    key("name", str),
    column("flow", str),
    column("state", str),
    column("step", str),
    column("definition", StoredJson()),
    column("created_at", datetime),
    column("created_by", str),
    column("updated_at", datetime),
    Index(None, "flow", "created_at"),
)

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

# See `cutover_rows.CutRow`.
Table(
    "cut",
    METADATA,
    key("cutover", str, ForeignKey("cutover.name", ondelete="CASCADE")),
    key("topic", str),
    key("partition", int),
    column("target_topic", str),
    column("source_end", int),
    column("target_end", int),
    column("cut_at", datetime),
)

# See `cutover_rows.HandedOverRow`.
Table(
    "handed_over_topic",
    METADATA,
    key("flow", str),
    key("topic", str),
    column("target_topic", str),
    column("cutover", str),
    column("since", datetime),
    column("by", str),
)
