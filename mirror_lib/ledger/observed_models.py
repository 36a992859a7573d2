"""Tables of observations, and the audit log. `models` registers them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, Table

from mirror_lib.ledger.metadata import METADATA, StoredJson, StoredText, column, key, optional

# See `observed_rows.FlowObservationRow`: the history of a flow's lag.
Table(
    "flow_observation",
    METADATA,
    key("flow", str),
    key("observed_at", datetime),
    optional("run_id", str),
    column("partitions", int),
    column("lagging", int),
    column("stalled", int),
    column("records_behind", int),
    optional("bytes_behind", int),
    optional("seconds_behind", float),
    optional("catch_up_seconds", float),
    optional("headroom_seconds", float),
    column("outlook", str),
    optional("writes_per_second", float),
    optional("groups", int),
    optional("groups_behind", int),
    optional("duplicates", int, stored="read_again"),
    optional("skipped", int),
    column("open_gaps", int),
)

# See `observed_rows.PartitionObservationRow`.
Table(
    "partition_observation",
    METADATA,
    key("flow", str),
    key("topic", str),
    key("partition", int),
    column("target_topic", str),
    column("observed_at", datetime),
    optional("log_start", int),
    optional("log_end", int),
    optional("position", int),
    optional("bytes_behind", int),
    optional("behind_since", datetime),
    optional("catch_up_seconds", float),
    optional("headroom_seconds", float),
    column("outlook", str),
    optional("reason", str),
    optional("detail", StoredText()),
)

# See `observed_rows.GroupObservationRow`.
Table(
    "group_observation",
    METADATA,
    key("flow", str),
    key("group", str),
    key("topic", str),
    key("partition", int),
    column("target_topic", str),
    column("observed_at", datetime),
    optional("upstream", int),
    optional("target_offset", int, stored="goes_on_at"),
    optional("target_committed", int),
    optional("duplicates", int, stored="read_again"),
    optional("skipped", int),
    optional("reason", str),
    optional("what", StoredText()),
)

# See `observed_rows.HeartbeatObservationRow`.
Table(
    "heartbeat_observation",
    METADATA,
    key("flow", str),
    key("pair", str),
    column("observed_at", datetime),
    optional("emitted_at", datetime),
    column("verdict", str),
    optional("detail", StoredText()),
)

# See `observed_rows.StepOutcomeRow`.
Table(
    "step_outcome",
    METADATA,
    key("flow", str),
    key("step", str),
    column("finished_at", datetime),
    column("differences", int),
    column("failed", int),
    optional("skipped", StoredText()),
    column("summary", StoredJson()),
)

# See `observed_rows.AuditRow`.
Table(
    "audit",
    METADATA,
    key("id", str),
    column("at", datetime),
    column("by", str),
    column("action", str),
    optional("flow", str),
    column("subject", str),
    column("detail", StoredJson()),
    Index(None, "flow", "at"),
)
