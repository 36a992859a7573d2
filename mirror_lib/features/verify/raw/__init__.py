"""Verification of records that are copied as they are."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "local": ["BINS_PER_PROCESS", "cores", "run_locally"],
        "task": ["verify_bin"],
    },
)
