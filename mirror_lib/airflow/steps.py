"""What a run of a flow does beside copying, and what it may leave out."""

from __future__ import annotations

#: Task id -> what people read on the form, in the order of the DAG. Each can be left out by itself.
OPTIONAL_STEPS = {
    "emit_heartbeats": "write heartbeats into the source",
    "sync_topics": "make missing target topics and partitions",
    "sync_topic_configs": "carry over topic configs",
    "sync_topic_acls": "carry over ACLs",
    "heartbeats": "check heartbeats on the target",
    "translate_offsets": "translate positions of groups, write checkpoints",
    "sync_group_offsets": "commit translated positions on the target",
    "announce_new_records": "trigger DAGs that wait for new records",
}
