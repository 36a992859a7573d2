"""The state of a flow: what follows a run, and what a run that begins now will meet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "after_run": ["ledger_tidied_up", "observe_after_run"],
        "next_run": ["FlowForecast", "NextRun", "PartitionForecast", "forecast_of", "look_at_next_run"],
    },
)
