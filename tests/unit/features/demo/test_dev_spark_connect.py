"""What starts a Spark Connect server, here and in containers."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.features.demo.spark_connect import server_command
from mirror_lib.spark.settings import SPARK_SETTINGS
from tests.support.compose import ComposeFile

#: Containers have their Python by `PYSPARK_PYTHON`.
_OF_THIS_MACHINE = ("--conf=spark.pyspark.python=", "--conf=spark.pyspark.driver.python=")


def _words(host: str = "0.0.0.0") -> list[str]:
    command = server_command(Path("/spark"), master="local[2]", host=host, port=15002)
    return [word for word in command if not word.startswith(_OF_THIS_MACHINE)]


def test_the_server_has_the_settings_of_every_job_and_its_own_after_them() -> None:
    settings = [word.removeprefix("--conf=") for word in _words() if word.startswith("--conf=")]

    for key in ("spark.speculation", "spark.task.maxFailures", "spark.python.daemon.module"):
        assert f"{key}={SPARK_SETTINGS[key]}" in settings
    assert "spark.connect.grpc.binding.port=15002" in settings


def test_the_container_is_started_in_the_same_way() -> None:
    """But at an address of the one network from which it is to be reached."""
    address = "10.0.0.10"
    variables = {"SPARK_WORKER_CORES": "2", "SPARK_CONNECT_ADDRESS": address}
    service = ComposeFile.read(variables, {}).service("spark-connect")

    assert set(service.command) == {"spark-submit", *_words(address)[1:]}
    assert service.environment["PYSPARK_PYTHON"] == "/opt/mirror/venv/bin/python"
