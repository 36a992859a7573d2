"""The DAG that writes heartbeats at its own interval."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_heartbeat_dags", "heartbeat_dag_id"],
        "tasks": ["EMITTED_KEY", "check_heartbeats", "emit"],
    },
)
