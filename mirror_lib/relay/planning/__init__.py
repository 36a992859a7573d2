"""Planning a round: facts of both clusters in, ranges and tasks out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "aborted_records": ["aborted_notes", "copied_transactions"],
        "altered_positions": ["altered_notes", "note_altered"],
        "by_transform_chain": ["ChainJob", "route_record", "row_copy", "split_job", "whole_takeovers"],
        "facts": ["FlowClusters", "gather_facts", "with_flow"],
        "foreign_writes": ["foreign_notes", "offsets_behind_copies"],
        "known_topics": ["new_topics_matter", "note_topics", "topics_to_note"],
        "handed_over": ["AfterCutover", "after_cutovers"],
        "lost_deletions": ["find_lost_deletions", "last_caught_up", "note_lost_deletions"],
        "lost_positions": ["find_lost_positions"],
        "new_topics": ["limits_of_new_topics"],
        "open_transactions": [
            "hanging_problems",
            "hidden_detail",
            "is_hanging",
            "longest_transaction_seconds",
            "open_transaction_notes",
            "shown_transaction",
        ],
        "plan": ["hot_partition_warnings", "plan_round"],
        "rate_limits": ["RunRate"],
        "source_logs": ["LONG_OPEN_SECONDS", "SourceLogs", "read_source_logs"],
        "source_losses": ["FoundLoss", "find_loss", "find_target_change"],
        "unknown_history": ["history_notes", "note_histories"],
        "unselected": [
            "deleted_notes",
            "note_unselected",
            "renamed_notes",
            "unselected_error",
            "unselected_notes",
            "unselected_partitions",
        ],
        "topic_limits": ["retention_warnings", "timestamp_warnings", "topic_warnings"],
    },
)
