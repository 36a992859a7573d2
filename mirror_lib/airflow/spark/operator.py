"""The common part of all tasks that submit a Spark job of this project."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, Context, SparkSubmitOperator
from mirror_lib.airflow.forms.conf import CheckedConf
from mirror_lib.airflow.forms.fields import USUAL_LOG_LEVEL
from mirror_lib.airflow.retries import failing_at_once
from mirror_lib.airflow.secret_masking import task_secrets
from mirror_lib.airflow.spark.connect_driver import DRIVER_PYTHON, ConnectDriver
from mirror_lib.airflow.spark.connection import (
    check_submitter,
    connect_address,
    describe_master,
    master_of,
    runs_driver_elsewhere,
    submit_environment,
)
from mirror_lib.airflow.templates import untemplated
from mirror_lib.config.loader import load
from mirror_lib.config.secrets.lookup_context import HANDED_OVER
from mirror_lib.errors import ConfigurationError
from mirror_lib.spark.argument_file import shorten
from mirror_lib.spark.connect_server import REMOTE_VARIABLE
from mirror_lib.spark.settings import SPARK_SETTINGS
from mirror_lib.spark.submit import job_module, submit_settings

_log = logging.getLogger(__name__)
#: Read by the job (`spark_jobs.job_log`).
_LOG_LEVEL = "MIRROR_LOG_LEVEL"
#: Linux limits one variable to 128 KiB (MAX_ARG_STRLEN), name included. The text is ASCII.
_LONGEST_VARIABLE = 100_000


class SparkJobOperator(CheckedConf, SparkSubmitOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Runs a job that writes a report to a file, and evaluates the report whatever the job's result.

    The job is submitted, or gets its session from a Spark Connect server if the flow's connection names one.
    """

    application: str
    conf: dict[str, str]
    application_args: list[str]
    env_vars: dict[str, str]

    def __init__(
        self, *, application: Path, flow: str, config_path: str, conn_id: str, name: str, **kwargs: Any
    ) -> None:
        super().__init__(
            application=str(application),
            conn_id=conn_id,
            conf=dict(SPARK_SETTINGS),
            name=untemplated(name),
            **kwargs,
        )
        self.flow = flow
        self.config_path = config_path
        self.spark_conn_id = conn_id
        self._driver: ConnectDriver | None = None

    def execute(self, context: Context) -> None:
        """Run the job.

        Raises:
            InvalidConfigurationError: the file has errors.
            ConfigurationError: the driver cannot get values of Airflow, or the connection cannot submit a job.
            TransientError: Airflow does not return its values.
            MirrorError: raised by `_judge`.
        """
        with failing_at_once():
            self._run(context)

    def _run(self, context: Context) -> None:
        handed_over, transforms = self._asked_of_the_file()
        _log.info("%s", describe_master(self.spark_conn_id))
        check_submitter(self.spark_conn_id)
        server = connect_address(self.spark_conn_id)
        self.conf = submit_settings(master_of(self.spark_conn_id), transforms=transforms)
        if os.environ.get(DRIVER_PYTHON):
            del self.conf["spark.pyspark.driver.python"]
        self.env_vars = {_LOG_LEVEL: context["params"].get("log_level") or USUAL_LOG_LEVEL}
        environment = None if server is None else {**handed_over, **self.env_vars, REMOTE_VARIABLE: server.url}
        self._defer(context, environment)
        with tempfile.TemporaryDirectory(prefix="mirror-report-") as folder:
            path = Path(folder, "report.json")
            self.application_args = shorten(self._command_line(context, path), path.parent)
            failure: AirflowException | None = None
            try:
                if environment is not None:
                    self._driver = ConnectDriver(job_module(Path(self.application)), self.application_args)
                    self._driver.run(environment)
                else:
                    # Of `env_vars` the provider makes settings on Kubernetes, which a driver on this machine lacks.
                    with submit_environment(self.spark_conn_id, {**handed_over, **self.env_vars}):
                        super().execute(context)
            except AirflowException as error:
                failure = error
            self._judge(context, path, failure)

    def _get_hook(self) -> Any:
        """Return the provider's hook, which logs Spark's output: with this project's logger, which is printable."""
        hook = super()._get_hook()
        hook._log = _log  # noqa: SLF001 - of Airflow's LoggingMixin, which creates another one otherwise
        return hook

    def on_kill(self) -> None:
        """End the job: this process's own driver, or the job that the provider has submitted."""
        if self._driver is not None:
            self._driver.end()
        else:
            super().on_kill()

    def _defer(self, context: Context, environment: Mapping[str, str] | None) -> None:
        """Defer the task, if it can be; else return, and the task itself runs the driver.

        Args:
            environment: additional variables of a driver for a Spark Connect server; None if jobs are submitted.
        """
        del context, environment

    def _asked_of_the_file(self) -> tuple[dict[str, str], bool]:
        """Return the values that the file takes from Airflow, as an environment variable for the driver, which has no
        access to Airflow, and whether the flow has transforms.

        From then on Airflow masks all secrets of the file in Spark's output.
        """
        if not Path(self.config_path).exists():
            # The job's machine may have it; if not, the job reports it.
            return {}, False
        with task_secrets() as values:
            config = load(self.config_path)
        if values.found and runs_driver_elsewhere(self.spark_conn_id):
            raise ConfigurationError(
                f"{self.config_path} takes values from Airflow's connections or variables, but the connection "
                f"{self.spark_conn_id} uses deploy-mode cluster. There, values could only be passed as Spark settings, "
                "which Spark shows.",
                action="Use deploy mode client, or the providers env, file or directory with values on the driver's "
                "host or in its container.",
            )
        handed_over = {HANDED_OVER: json.dumps(values.found)} if values.found else {}
        if any(len(text) > _LONGEST_VARIABLE for text in handed_over.values()):
            largest = max(values.found, key=lambda name: len(values.found[name]))
            raise ConfigurationError(
                f"the values that {self.config_path} takes from Airflow are too long for the environment of Spark's "
                f"driver; the longest is {largest}.",
                action=f"The limit is {_LONGEST_VARIABLE:,} characters in total: put large values such as key stores "
                "into files, and configure their paths.",
            )
        transforms = any(each.transforms for each in config.enabled_flows if str(each.flow) == self.flow)
        return handed_over, transforms

    @abstractmethod
    def _command_line(self, context: Context, report: Path) -> list[str]:
        """Return the job's arguments.

        Args:
            report: where the job writes its report.
        """

    @abstractmethod
    def _judge(self, context: Context, report: Path, failure: AirflowException | None) -> None:
        """Pass the report on, and raise an error for a failure.

        Args:
            report: may not exist.
            failure: None if the job ended with exit code 0.
        """
