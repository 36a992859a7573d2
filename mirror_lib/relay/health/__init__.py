"""The state of a flow: observation for page and metrics, and what a run that begins now will meet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "next_run": ["NextRun", "look_at_next_run"],
        "observation": ["FlowObserved", "observe_flow"],
    },
)
