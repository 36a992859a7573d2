"""Queries over several tables, for rounds."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "copy_rounds": ["CopiedRound", "FlowLag"],
    },
)
