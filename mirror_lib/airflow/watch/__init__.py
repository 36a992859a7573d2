"""Runs of a flow that new records start: the schedule, and the trigger that Airflow's triggerer runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"dag_schedule": ["flow_schedule"]},
)
