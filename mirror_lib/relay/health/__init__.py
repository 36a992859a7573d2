"""The state of a flow: observation for page and metrics, and the forecast."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "forecast": ["FlowForecast", "NextRun", "forecast_plan", "look_at_next_run"],
        "observation": ["FlowObserved", "observe_flow"],
    },
)
