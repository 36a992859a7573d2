"""One module per table or group of tables: reads and writes their rows."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "audits": ["Audits"],
        "cluster_pairs": ["ClusterPairs"],
        "handovers": ["HandoverRecords"],
        "gaps": ["LastCopy"],
        "history": ["History"],
        "locks": ["is_held_by", "live_locks", "lock_name"],
        "observations": ["Observations"],
        "rate_claims": ["RateAsk"],
        "segment_runs": ["columns_of"],
        "transaction_counts": ["transaction_totals"],
        "verifications": ["WHOLE_RECORDS", "is_of_position", "is_of_present_copy"],
    },
)
