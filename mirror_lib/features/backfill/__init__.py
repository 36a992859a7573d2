"""Backfills: bounded copies next to a flow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "late_writes": ["accounted_for"],
        "tables": ["Backfills"],
    },
)
