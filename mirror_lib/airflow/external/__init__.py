"""Flows in an Airflow that does not have this package: a DAG file, its description, and the tasks it starts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"stand_ins": ["RetryDecision", "RetryPolicy"]},
)
