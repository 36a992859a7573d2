"""What a stored fact is true of: clusters, source log, target log, copy, ledger.

Every reader of a stored position, map or checkpoint asks here whether it still holds. It writes nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "clusters": [
            "about_one_cluster",
            "check_clusters",
            "check_heartbeats_cluster",
            "cluster_pair",
            "compare_reachable_clusters",
            "ledger_name",
        ],
        "histories": ["SOUND_HISTORY", "History", "LedgerState"],
        "last_records": ["MOST_BYTES", "MOST_PARTITIONS", "compare_last_records", "newest_copies", "read_records_at"],
        "log_looks": ["LogEnds", "changed_logs"],
        "ledger_positions": [
            "LedgerPositions",
            "Past",
            "compared_positions",
            "lacks_history",
            "missing_part",
            "open_histories",
        ],
        "positions": ["AvailablePositions", "position_row", "position_snapshot", "positions_in", "stored_positions"],
        "sources": ["CopiedFrom", "SourceLog", "Truncation", "find_truncation"],
        "targets": [
            "CopiedTo",
            "TargetPartition",
            "copied_to",
            "is_other_topic",
            "other_record",
            "position_change",
            "source_cluster_change",
            "target_change",
            "target_cluster_change",
        ],
        "unselected": ["Selection", "Unselected", "find_unselected"],
    },
)
