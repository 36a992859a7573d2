"""Backfills: bounded copies next to a flow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "define": ["estimate", "find_backfill", "prepare_backfill", "request_of"],
        "model": ["BackfillRequest", "FROM_CUTOVER", "backfill_id"],
        "plan": ["BackfillEstimate"],
        "run": ["run_backfill"],
        "situation": ["situations_of"],
        "states": ["again", "let_flow_continue", "or_dag"],
    },
)
