"""Claiming partitions: fence the earlier writer, and find the start."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "claim": ["chains_of", "name_positions", "open_partitions", "store_first_positions"],
        "hidden_positions": ["uncover_positions"],
        "rewound_syncs": ["rewind_all_syncs", "rewind_syncs"],
        "unknown_records": ["with_found_records"],
    },
)
