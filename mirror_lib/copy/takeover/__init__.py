"""Take over from a writer that did not finish: fence it, find its end, match the tail."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "fencing": ["check_not_truncated", "fence", "fence_name", "seconds_until_ended"],
        "hanging_transactions": ["Hanging", "coordinator_deadline"],
        "partition_appender": ["PartitionAppender"],
        "partition_reader": ["PartitionReader"],
        "recovery": ["Recovered", "known_poison", "take_over_all", "walk_along"],
        "stable_end": ["replicated_end", "until_stable"],
        "tail_match": ["MismatchError", "TailMatcher", "TwoLogs"],
        "transaction_markers": ["Markers", "overtime"],
    },
)
