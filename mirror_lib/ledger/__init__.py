"""The ledger: runs, offset map, gaps, cutovers, verifications, in a SQL database.

Ask it to store and to read rows. It decides nothing, and never talks to Kafka.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cutover_rows": ["CarrierRow", "CutRow", "CutoverRow", "CutoverStepRow", "HandedOverRow", "QuestionRow"],
        "directions": ["MapPart", "inverse_run_id", "map_parts", "run_id_in", "with_ends"],
        "driver_rows": ["DriverRow", "DriverState"],
        "handovers": [
            "all_with_handovers",
            "enabled_opposite_of",
            "load_flow_as_it_runs",
            "opposite_of",
            "with_handovers",
        ],
        "location": ["default_ledger_url", "existing_ledger", "ledger_url", "open_ledger"],
        "metadata": ["METADATA", "selected"],
        "observation_guard": ["log_errors"],
        "observed_rows": [
            "FlowObservationRow",
            "GroupObservationRow",
            "HeartbeatObservationRow",
            "PartitionObservationRow",
            "StepOutcomeRow",
        ],
        "offset_rows": ["KnownPosition", "PositionRow", "RoutedRangeRow", "SegmentRow", "TransactionCountRow"],
        "tables.gaps": ["OpenGaps"],
        "rows": [
            "AclKind",
            "AclState",
            "BackfillRow",
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
            "VerificationRow",
        ],
        "store": ["Ledger"],
    },
)
