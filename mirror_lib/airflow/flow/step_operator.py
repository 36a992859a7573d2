"""A Python task of a flow's DAG."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mirror_lib.airflow.compatibility import AirflowSkipException, Context
from mirror_lib.airflow.flow.form import excluded_steps
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.forms.fields import USUAL_LOG_LEVEL
from mirror_lib.airflow.python_task import PythonTask

_SKIPPED = "the run was triggered without this step"


class StepOperator(PythonTask):
    """Calls its function unless the trigger form skips the step, and logs as much as the form says."""

    def execute(self, context: Context) -> Any:
        """Do the step.

        Raises:
            AirflowSkipException: the form skips it; the report shows that.
        """
        params = context["params"]
        if self.task_id in excluded_steps(params):
            context["ti"].xcom_push(key=STEP_KEY, value={"skipped": _SKIPPED, "failed": 0, "problems": []})
            raise AirflowSkipException(f"{_SKIPPED}.")
        with logging_at(params.get("log_level") or USUAL_LOG_LEVEL):
            return super().execute(context)


@contextmanager
def logging_at(level: str) -> Iterator[None]:
    """Set the log level of this project's loggers; those of Airflow and of libraries are not changed."""
    logger = logging.getLogger("mirror_lib")
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
