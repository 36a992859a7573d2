"""Comparing compacted topics by state: the newest record of each key on both sides, whatever compaction has removed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "lost": ["find_lost_deletions"],
        "plan": ["plan_state"],
        "run": ["compare_by_state"],
    },
)
