"""Clusters, Spark and Airflow on this machine, for `mirror dev` and the demo."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "demo": ["DemoOutcome", "Steps", "run_demo", "stop_demo"],
        "jars": ["FetchProgress"],
        "stack": ["ClusterStatus"],
    },
)
