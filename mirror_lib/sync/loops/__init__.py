"""Loops: flows whose records return to their cluster."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "flow": ["check_loops", "namesake_notes", "refuse_loops", "refuse_own_copies"],
        "ledger": ["refuse_ledger_loops"],
    },
)
