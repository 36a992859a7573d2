"""Airflow DAGs, operators and tasks of the project. A feature's DAGs are made of what this package exports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "compatibility": ["AirflowException", "Context", "DAG", "Param", "get_parsing_context"],
        "dag_defaults": ["new_dag"],
        "retries": ["retry_policy"],
        "schedule": ["RUN_TYPES", "airflow_schedule"],
    },
)
