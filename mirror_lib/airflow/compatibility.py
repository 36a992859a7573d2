"""Everything that depends on the version of Airflow or of its Spark provider, in one place.

Written for Airflow 3.3 and provider 6.3; an upgrade starts by reading this file.
"""

from __future__ import annotations

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import (  # type: ignore[attr-defined]  # its stub lacks what belongs to deadlines
    DAG,
    Asset,
    AssetAlias,
    AsyncCallback,
    BaseHook,
    Context,
    DeadlineAlert,
    DeadlineReference,
    Param,
    ParamsDict,
    RetryDecision,
    RetryPolicy,
    TriggerRule,
    Variable,
    get_parsing_context,
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowRuntimeError,
    AirflowSkipException,
    ErrorType,
)
from airflow.sdk.log import mask_secret

__all__ = [
    "DAG",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRuntimeError",
    "AirflowSkipException",
    "Asset",
    "AssetAlias",
    "AsyncCallback",
    "BaseHook",
    "Context",
    "DeadlineAlert",
    "DeadlineReference",
    "ErrorType",
    "HITLOperator",
    "Param",
    "ParamsDict",
    "PythonOperator",
    "RetryDecision",
    "RetryPolicy",
    "SparkSubmitOperator",
    "TriggerRule",
    "Variable",
    "get_parsing_context",
    "mask_secret",
]
