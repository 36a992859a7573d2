"""Spark jobs as Airflow tasks: the connection, the submission, the pool, how a job ended."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "connect_driver": ["StartedDriver", "driver_environment", "driver_python"],
        "connection": [
            "check_connect_server",
            "check_submitter",
            "describe_master",
            "is_deferrable",
            "master_of",
            "spark_master",
        ],
        "operator": ["SparkJobOperator"],
        "outcome": ["exit_code_in", "failure_of", "skip_reason", "without_report", "xcom_value"],
        "pool": ["pool_of"],
        "submission": ["master_url", "shown_master"],
    },
)
