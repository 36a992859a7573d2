"""Airflow DAGs, operators and tasks of the project. Features build their DAGs with the exported names.

A task calls the function that a command calls. No rule of the copy is here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "compatibility": [
            "AirflowException",
            "AirflowFailException",
            "AirflowNotFoundException",
            "AirflowRuntimeError",
            "AirflowSkipException",
            "Asset",
            "BaseHook",
            "Context",
            "DAG",
            "ErrorType",
            "HITLOperator",
            "Param",
            "TriggerRule",
            "Variable",
            "get_parsing_context",
            "is_external",
            "put_question",
            "use_stand_ins",
        ],
        "dag_defaults": ["new_dag"],
        "dags": ["build_dags", "kinds", "mirror_dags"],
        "python_task": ["PythonTask"],
        "retries": ["failing_at_once", "is_hopeless", "retry_policy"],
        "retry_stand_ins": ["RetryDecision", "RetryPolicy"],
        "schedule": ["RUN_TYPES", "airflow_schedule"],
        "secret_masking": ["task_secrets"],
        "task_states": ["ENDED_STATES", "task_state"],
        "triggerer": ["load_in_triggerer"],
        "templates": ["Template", "untemplated"],
    },
)
