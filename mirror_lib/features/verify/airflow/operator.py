"""The task that compares: `spark-submit spark_jobs/verify.py`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from mirror_lib.airflow import AirflowException, Context
from mirror_lib.airflow.forms.fields import chosen_values
from mirror_lib.airflow.spark.operator import SparkJobOperator
from mirror_lib.airflow.spark.outcome import exit_code_in
from mirror_lib.features.verify.airflow.outcome import VerifyOutcome, failure_of
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.spark.submit import job_file

_log = logging.getLogger(__name__)
#: XCom key of the result, also when something differs.
RESULT_KEY = "verification"


class VerifyOperator(SparkJobOperator):
    """Submits the verification of one flow and turns its result into success, a failure, or a retry.

    Every attempt is its own verification in the ledger. In `recent` mode, it does not repeat what an earlier attempt
    found equal.
    """

    def __init__(self, *, flow: str, **kwargs: Any) -> None:
        super().__init__(
            application=job_file().with_name("verify.py"), flow=flow, name=f"mirror verify {flow}", **kwargs
        )

    def _command_line(self, context: Context, report: Path) -> list[str]:
        chosen = chosen_values(VerifyArguments, context["params"])
        return VerifyArguments(config=Path(self.config_path), flow=self.flow, report=report, **chosen).command_line()

    def _judge(self, context: Context, report: Path, failure: AirflowException | None) -> None:
        """Push the result to XCom and log it in any case."""
        found = VerifyOutcome.read(report)
        if found is not None:
            context["ti"].xcom_push(key=RESULT_KEY, value=found.xcom_value())
            for line in found.lines():
                _log.info("%s", line)
        if failure is not None:
            code = found.exit_code if found is not None else exit_code_in(str(failure))
            raise failure_of(self.flow, code, found) from failure
