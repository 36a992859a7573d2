"""The DAG of backfills: define, estimate, copy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_backfill_dags"],
    },
)
