"""Forecasts: when a flow will have caught up, and whether retention deletes records before they are copied."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"plan": ["forecast_plan"]},
)
