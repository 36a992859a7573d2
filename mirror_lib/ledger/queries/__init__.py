"""Queries over several tables: for the page and verdicts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "copy_rounds": ["CopiedRound", "FlowLag"],
        "group_columns": ["is_own"],
        "page": ["PARTITION_ORDERS", "PageQueries", "PartitionFilter"],
        "verdicts": ["Verdicts", "VerificationSummary"],
    },
)
