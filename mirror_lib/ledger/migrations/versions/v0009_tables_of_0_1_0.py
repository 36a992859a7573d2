"""The tables of version 0.1.0, in one step: no released version had an earlier ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = None
branch_labels = None
depends_on = None

#: In the order of their creation: a later one may refer to an earlier one.
_TABLES = (
    "run",
    "partition_run",
    "run_lock",
    "round",
    "rate_claim",
    "position",
    "offset_segment",
    "gap",
    "routed_range",
    "replicated_acl",
    "sync_time",
    "verification",
    "backfill",
    "flow_observation",
    "partition_observation",
    "group_observation",
    "heartbeat_observation",
    "step_outcome",
    "audit",
    "cutover",
    "cutover_step",
    "cut",
    "handed_over_topic",
)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _words(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable, autoincrement=False)


def _real(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=nullable)


def upgrade() -> None:
    """To this version."""
    _runs()
    _positions()
    _syncs()
    _verifications_and_backfills()
    _observations()
    _cutovers()


def _runs() -> None:
    op.create_table(
        "run",
        _text("id"),
        _text("flow"),
        _text("trigger"),
        _text("state"),
        _time("started_at"),
        _time("finished_at", nullable=True),
        _number("rounds"),
        _number("planned_partitions"),
        _number("records"),
        _number("bytes"),
        _json("error", nullable=True),
        _time("heartbeat_at"),
        sa.CheckConstraint("state IN ('running', 'succeeded', 'partial', 'failed')", name=op.f("ck_run_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    op.create_index(op.f("ix_run_flow_started_at"), "run", ["flow", "started_at"])
    op.create_index(op.f("ix_run_trigger"), "run", ["trigger"])
    op.create_table(
        "partition_run",
        _text("run_id"),
        _text("topic"),
        _number("partition"),
        _number("round"),
        _text("target_topic"),
        _number("start_offset"),
        _number("end_offset"),
        _number("source_next"),
        _number("target_first"),
        _number("target_next"),
        _number("records"),
        _number("bytes"),
        _number("batches"),
        _number("first_timestamp", nullable=True),
        _number("last_timestamp", nullable=True),
        _real("seconds"),
        _text("state"),
        _text("reason", nullable=True),
        _words("detail", nullable=True),
        _time("updated_at"),
        sa.CheckConstraint("state IN ('planned', 'copying', 'done', 'failed')", name=op.f("ck_partition_run_state")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_partition_run_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "topic", "partition", "round", name=op.f("pk_partition_run")),
    )
    op.create_table(
        "run_lock",
        _text("flow"),
        _text("run_id"),
        _text("holder"),
        _time("acquired_at"),
        _time("renewed_at"),
        _real("lease_seconds"),
        sa.PrimaryKeyConstraint("flow", name=op.f("pk_run_lock")),
    )
    op.create_table(
        "round",
        _text("run_id"),
        _text("flow"),
        _number("number"),
        _time("began_at"),
        _real("planning_seconds"),
        _real("opening_seconds"),
        _real("copying_seconds"),
        _real("committing_seconds"),
        _number("tasks"),
        _number("partitions"),
        _number("records"),
        _number("bytes"),
        _number("heaviest_bytes"),
        _number("lag_records"),
        _number("lag_bytes", nullable=True),
        _number("planned_records"),
        _number("planned_bytes", nullable=True),
        _number("expected_bytes", nullable=True),
        _real("expected_seconds", nullable=True),
        _number("oldest_age_ms", nullable=True),
        _number("newest_age_ms", nullable=True),
        _time("committed_at", nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_round_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_round")),
    )
    op.create_index(op.f("ix_round_flow_began_at"), "round", ["flow", "began_at"])
    # The largest rounds are queried before each round, and a flow may run one every second.
    op.create_index(op.f("ix_round_flow_heaviest_bytes"), "round", ["flow", "heaviest_bytes"])
    op.create_table(
        "rate_claim",
        _text("flow"),
        _text("side"),
        _text("cluster"),
        _text("run_id"),
        _number("wanted", nullable=True),
        _number("bytes_per_second"),
        _time("claimed_at"),
        sa.CheckConstraint("side IN ('read', 'write')", name=op.f("ck_rate_claim_side")),
        sa.PrimaryKeyConstraint("flow", "side", name=op.f("pk_rate_claim")),
    )


def _positions() -> None:
    op.create_table(
        "position",
        _text("flow"),
        _text("topic"),
        _number("partition"),
        _number("offset"),
        _number("target_offset", nullable=True),
        _text("state"),
        _number("producer_id", nullable=True),
        _number("epoch", nullable=True),
        _text("run_id", nullable=True),
        _text("topic_id", nullable=True),
        _time("updated_at"),
        sa.CheckConstraint("state IN ('open', 'closed')", name=op.f("ck_position_state")),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", name=op.f("pk_position")),
    )
    op.create_table(
        "offset_segment",
        _text("flow"),
        _text("topic"),
        _number("partition"),
        _number("source_first"),
        _number("source_next"),
        _number("target_first"),
        _number("target_next"),
        _number("records"),
        sa.Column("runs", sa.LargeBinary(), nullable=True),
        _text("run_id"),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", "source_first", name=op.f("pk_offset_segment")),
    )
    op.create_table(
        "gap",
        _text("id"),
        _text("flow"),
        _text("topic"),
        _number("partition"),
        _text("cause"),
        _number("first_offset"),
        _number("next_offset"),
        _number("records", nullable=True),
        _time("first_time", nullable=True),
        _time("last_time", nullable=True),
        _text("topic_id", nullable=True),
        _words("detail"),
        _text("run_id", nullable=True),
        _time("found_at"),
        _text("state"),
        _text("decided_by", nullable=True),
        _time("decided_at", nullable=True),
        _words("note", nullable=True),
        sa.CheckConstraint("state IN ('open', 'accepted', 'recopied', 'stopped')", name=op.f("ck_gap_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gap")),
    )
    op.create_index(op.f("ix_gap_flow_state"), "gap", ["flow", "state"])
    op.create_table(
        "routed_range",
        _text("flow"),
        _text("target_topic"),
        _number("target_partition"),
        _number("stretch"),
        _text("topic"),
        _number("partition"),
        _flag("own"),
        _number("source_first"),
        _number("source_next"),
        _number("target_first"),
        _number("target_next"),
        _number("records"),
        _text("run_id"),
        sa.PrimaryKeyConstraint(
            "flow",
            "target_topic",
            "target_partition",
            "stretch",
            "topic",
            "partition",
            name=op.f("pk_routed_range"),
        ),
    )


def _syncs() -> None:
    op.create_table(
        "replicated_acl",
        _text("flow"),
        _text("resource"),
        _text("name"),
        _text("pattern"),
        _text("principal"),
        _text("host"),
        _text("operation"),
        _text("permission"),
        _text("kind"),
        _text("state"),
        _flag("withdrawn"),
        _time("changed_at"),
        _text("changed_by"),
        sa.CheckConstraint("kind IN ('copied', 'staged')", name=op.f("ck_replicated_acl_kind")),
        sa.CheckConstraint("state IN ('waiting', 'creating', 'created')", name=op.f("ck_replicated_acl_state")),
        sa.PrimaryKeyConstraint(
            "flow",
            "resource",
            "name",
            "pattern",
            "principal",
            "host",
            "operation",
            "permission",
            name=op.f("pk_replicated_acl"),
        ),
    )
    op.create_table(
        "sync_time",
        _text("flow"),
        _text("step"),
        _time("begun_at"),
        sa.PrimaryKeyConstraint("flow", "step", name=op.f("pk_sync_time")),
    )


def _verifications_and_backfills() -> None:
    op.create_table(
        "verification",
        _text("id"),
        _text("flow"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _text("mode"),
        _text("verdict"),
        _text("reason", nullable=True),
        _words("detail", nullable=True),
        _number("source_first", nullable=True),
        _number("source_next", nullable=True),
        _number("target_first", nullable=True),
        _number("target_next", nullable=True),
        _number("records"),
        _number("bytes"),
        _text("digest", nullable=True),
        _number("difference_count"),
        _json("differences", nullable=True),
        _time("started_at"),
        _time("finished_at"),
        sa.CheckConstraint("mode IN ('full', 'sample', 'recent')", name=op.f("ck_verification_mode")),
        sa.CheckConstraint("verdict IN ('equal', 'different', 'unverifiable')", name=op.f("ck_verification_verdict")),
        sa.PrimaryKeyConstraint("id", "topic", "partition", name=op.f("pk_verification")),
    )
    op.create_index(
        op.f("ix_verification_flow_topic_partition_finished_at"),
        "verification",
        ["flow", "topic", "partition", "finished_at"],
    )
    op.create_table(
        "backfill",
        _text("flow"),
        _text("name"),
        _json("definition"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("flow", "name", name=op.f("pk_backfill")),
    )


def _observations() -> None:
    op.create_table(
        "flow_observation",
        _text("flow"),
        _time("observed_at"),
        _text("run_id", nullable=True),
        _number("partitions"),
        _number("lagging"),
        _number("stalled"),
        _number("records_behind"),
        _number("bytes_behind", nullable=True),
        _real("seconds_behind", nullable=True),
        _real("catch_up_seconds", nullable=True),
        _real("headroom_seconds", nullable=True),
        _text("outlook"),
        _real("writes_per_second", nullable=True),
        _number("groups", nullable=True),
        _number("groups_behind", nullable=True),
        _number("read_again", nullable=True),
        _number("open_gaps"),
        sa.PrimaryKeyConstraint("flow", "observed_at", name=op.f("pk_flow_observation")),
    )
    op.create_table(
        "partition_observation",
        _text("flow"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _time("observed_at"),
        _number("log_start", nullable=True),
        _number("log_end", nullable=True),
        _number("position", nullable=True),
        _number("bytes_behind", nullable=True),
        _time("behind_since", nullable=True),
        _real("catch_up_seconds", nullable=True),
        _real("headroom_seconds", nullable=True),
        _text("outlook"),
        _text("reason", nullable=True),
        _words("detail", nullable=True),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", name=op.f("pk_partition_observation")),
    )
    op.create_table(
        "group_observation",
        _text("flow"),
        _text("group"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _time("observed_at"),
        _number("upstream", nullable=True),
        _number("goes_on_at", nullable=True),
        _number("target_committed", nullable=True),
        _number("read_again", nullable=True),
        _text("reason", nullable=True),
        _words("what", nullable=True),
        sa.PrimaryKeyConstraint("flow", "group", "topic", "partition", name=op.f("pk_group_observation")),
    )
    op.create_table(
        "heartbeat_observation",
        _text("flow"),
        _text("pair"),
        _time("observed_at"),
        _time("emitted_at", nullable=True),
        _text("verdict"),
        _words("detail", nullable=True),
        sa.PrimaryKeyConstraint("flow", "pair", name=op.f("pk_heartbeat_observation")),
    )
    op.create_table(
        "step_outcome",
        _text("flow"),
        _text("step"),
        _time("finished_at"),
        _number("differences"),
        _number("failed"),
        _words("skipped", nullable=True),
        _json("summary"),
        sa.PrimaryKeyConstraint("flow", "step", name=op.f("pk_step_outcome")),
    )
    op.create_table(
        "audit",
        _text("id"),
        _time("at"),
        _text("by"),
        _text("action"),
        _text("flow", nullable=True),
        _text("subject"),
        _json("detail"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_flow_at"), "audit", ["flow", "at"])


def _cutovers() -> None:
    op.create_table(
        "cutover",
        _text("name"),
        _text("flow"),
        _text("state"),
        _text("step"),
        _json("definition"),
        _time("created_at"),
        _text("created_by"),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_cutover")),
    )
    op.create_index(op.f("ix_cutover_flow_created_at"), "cutover", ["flow", "created_at"])
    op.create_table(
        "cutover_step",
        _text("cutover"),
        _text("step"),
        _number("attempt"),
        _text("state"),
        _json("gates"),
        _json("facts"),
        _text("by"),
        _time("started_at"),
        _time("finished_at", nullable=True),
        _json("error", nullable=True),
        sa.ForeignKeyConstraint(
            ["cutover"], ["cutover.name"], name=op.f("fk_cutover_step_cutover_cutover"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cutover", "step", "attempt", name=op.f("pk_cutover_step")),
    )
    op.create_table(
        "cut",
        _text("cutover"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _number("source_end"),
        _number("target_end"),
        _time("cut_at"),
        sa.ForeignKeyConstraint(["cutover"], ["cutover.name"], name=op.f("fk_cut_cutover_cutover"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("cutover", "topic", "partition", name=op.f("pk_cut")),
    )
    op.create_table(
        "handed_over_topic",
        _text("flow"),
        _text("topic"),
        _text("target_topic"),
        _text("cutover"),
        _time("since"),
        _text("by"),
        sa.PrimaryKeyConstraint("flow", "topic", name=op.f("pk_handed_over_topic")),
    )


def downgrade() -> None:
    """Back to an empty database."""
    for table in reversed(_TABLES):
        op.drop_table(table)
