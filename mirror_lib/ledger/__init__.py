"""The ledger: runs, positions, offset map, gaps, in a SQL database; features add tables of their own.

Ask it to store and to read rows. It decides nothing, and never talks to Kafka.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cutover_rows": ["CutRow", "CutoverRow", "HandedOverRow"],
        "directions": ["MapPart", "inverse_run_id", "map_parts", "run_id_in", "with_ends"],
        "feature_tables": ["Migrations"],
        "handovers": [
            "all_with_handovers",
            "enabled_opposite_of",
            "load_flow_as_it_runs",
            "opposite_of",
            "with_handovers",
        ],
        "location": ["default_ledger_url", "existing_ledger", "ledger_url", "open_ledger"],
        "metadata": ["StoredJson", "StoredText", "column", "key", "optional", "selected"],
        "models": ["METADATA"],
        "observation_guard": ["log_errors"],
        "observed_rows": [
            "FlowObservationRow",
            "GroupObservationRow",
            "HeartbeatObservationRow",
            "PartitionObservationRow",
            "StepOutcomeRow",
        ],
        "offset_rows": ["KnownPosition", "PositionRow", "SegmentRow", "TransactionCountRow"],
        "queries.group_columns": ["is_behind", "is_own"],
        "tables.gaps": ["OpenGaps"],
        "tables.locks": ["clock", "lock_name"],
        "tables.verifications": ["WHOLE_RECORDS", "is_of_position", "is_of_present_copy"],
        "tables.writing": ["insert_new", "now", "upsert"],
        "rows": [
            "AclKind",
            "AclState",
            "ClusterPairRow",
            "CopiedTopic",
            "DELETIONS_WRITTEN",
            "DISASTER",
            "SOURCE_DELETED",
            "GapRow",
            "GapState",
            "NOT_COPIED",
            "REPEATED",
            "POSITION_SET",
            "PartitionRunRow",
            "RateSide",
            "ReplicatedAclRow",
            "RoundRow",
            "RunLockRow",
            "RunRow",
            "RunState",
        ],
        "store": ["Ledger"],
    },
)
