"""Gaps: records that a source has lost, and their resolutions by operators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "gaps": [
            "apply_decisions",
            "close_settled",
            "end_of_history",
            "note_losses",
            "plan_decisions",
            "plan_in_ledger",
            "settle_losses",
            "truncations",
            "undecided_gaps",
        ],
        "resolutions": ["Decision", "IN_LEDGER", "Resolution"],
    },
)
