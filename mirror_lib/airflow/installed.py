"""Everything that depends on the version of Airflow or of its Spark provider, in one place.

Written for Airflow 3.3 and 3.2, and provider 6.3 and 6.0; an upgrade starts by reading this file. Other modules import
these names from `compatibility`.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from airflow.configuration import conf
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
    DownstreamTasksSkipped,
    ErrorType,
)
from airflow.sdk.log import mask_secret
from airflow.utils.types import DagRunType

from mirror_lib.operator_limits import take_limits
from mirror_lib.printable_logs import make_logs_printable

try:
    from airflow.sdk import RetryDecision, RetryPolicy

    HAS_RETRY_POLICIES = True
except ImportError:
    # Airflow 3.2: `retries.failing_at_once` raises what Airflow does not retry.
    from mirror_lib.airflow.retry_stand_ins import RetryDecision, RetryPolicy

    HAS_RETRY_POLICIES = False

# Airflow's handlers write what they get.
make_logs_printable()
take_limits(lambda section, name: conf.get(section, name, fallback=None))
#: Values of `DAG(allowed_run_types=...)`.
KNOWN_RUN_TYPES = frozenset(each.value for each in DagRunType)

__all__ = [
    "DAG",
    "HAS_RETRY_POLICIES",
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
    "DownstreamTasksSkipped",
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
    "make_deadline",
    "mask_secret",
    "put_question",
]


def make_deadline(*, name: str, **arguments: Any) -> DeadlineAlert:
    """Return a deadline's alert; with its name since Airflow 3.3."""
    if "name" in signature(DeadlineAlert).parameters:
        arguments["name"] = name
    return DeadlineAlert(**arguments)


def put_question(operator: HITLOperator, task_instance_id: Any) -> tuple[str, str | None]:
    """Store a task's question, as its own `execute` does once more; return the subject and the body that Airflow shows.

    A cleared task has those of the first time (`upsert_hitl_detail` of Airflow 3.3).
    """
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    stored = SUPERVISOR_COMMS.send(
        CreateHITLDetailPayload(
            ti_id=task_instance_id,
            options=operator.options,
            subject=operator.subject,
            body=operator.body,
            defaults=operator.defaults,
            multiple=operator.multiple,
            params=operator.serialized_params,
            assigned_users=[],
        )
    )
    return stored.subject, stored.body
