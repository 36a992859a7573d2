"""After a round: positions, offset-syncs, the ledger, progress."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "commit": ["commit_round", "segment_rows"],
        "decided_positions": ["store_decided"],
        "poison_gaps": ["omission_rows"],
        "progress": ["RoundProgress"],
        "round_metrics": ["RoundAccount", "Step", "expectation"],
        "transaction_counts": ["with_transaction_counts"],
    },
)
