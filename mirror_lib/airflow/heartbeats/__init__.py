"""The DAG that writes heartbeats at an interval of its own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_heartbeat_dags", "heartbeat_dag_id"],
        "tasks": ["EMITTED_KEY", "check_heartbeats", "emit"],
    },
)
