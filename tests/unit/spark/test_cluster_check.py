"""What is said of a Spark cluster before a job goes there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.spark.cluster_check import cluster_notes, cores_at_most
from mirror_lib.spark.submit import spark_defaults

_MEBIBYTE = 1024 * 1024
_ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
STANDALONE = "spark://master:7077"


def _notes(settings: dict[str, str], master: str, *, tasks: int = 1, task_megabytes: int = 64) -> tuple[str, ...]:
    return cluster_notes(
        {**_ENCRYPTED, **settings}, master=master, tasks=tasks, task_memory_bytes=task_megabytes * _MEBIBYTE
    )


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "sc://server"])
def test_nothing_is_said_of_one_machine_and_of_a_server_that_runs_already(master: str) -> None:
    assert cluster_notes({}, master=master, tasks=100, task_memory_bytes=1 << 40) == ()


@pytest.mark.parametrize(
    ("master", "settings", "cores"),
    [
        (STANDALONE, {}, None),
        (STANDALONE, {"spark.cores.max": "6", "spark.executor.cores": "2"}, 6),
        ("yarn", {}, 2),
        ("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12),
        ("k8s://https://server", {"spark.executor.instances": "3"}, 3),
        ("yarn", {"spark.dynamicAllocation.enabled": "true"}, None),
        ("yarn", {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "5"}, 5),
    ],
)
def test_cores_are_counted_as_the_cluster_gives_them(master: str, settings: dict[str, str], cores: int | None) -> None:
    assert cores_at_most(settings, master) == cores


def test_bins_that_wait_for_a_core_are_named() -> None:
    (note,) = _notes({"spark.cores.max": "4", "spark.task.cpus": "2"}, STANDALONE, tasks=3)

    assert "2 tasks in parallel" in note
    assert "up to 3 (tasks.max)" in note


def test_a_core_for_each_bin_is_enough() -> None:
    assert _notes({"spark.cores.max": "4"}, STANDALONE, tasks=4) == ()


def test_a_container_without_room_for_python_is_named() -> None:
    """Two tasks of 256 + 100 MiB; the container adds 384 MiB to a heap of 1 GiB, the least that Spark adds."""
    settings = {"spark.executor.cores": "2", "spark.executor.memory": "1g"}

    (note,) = _notes(settings, "yarn", task_megabytes=256)

    assert "712 MiB" in note
    assert "384 MiB" in note


def test_a_container_has_more_room_for_python_where_records_go_through_transforms() -> None:
    """A task of 96 + 250 MiB; the container adds 300 MiB, which are enough for 96 + 100."""
    settings = {**_ENCRYPTED, "spark.executor.memoryOverhead": "300m"}
    plain, transforming = (
        cluster_notes(settings, master="yarn", tasks=1, task_memory_bytes=96 * _MEBIBYTE, transforms=transforms)
        for transforms in (False, True)
    )

    assert plain == ()
    assert "346 MiB" in transforming[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.executor.memoryOverhead": "1g"},
        {"spark.executor.memoryOverhead": "800"},
        {"spark.executor.pyspark.memory": "400m"},
        {"spark.executor.memoryOverheadFactor": "0.8"},
    ],
)
def test_room_for_python_may_come_by_each_setting_that_spark_has_for_it(settings: dict[str, str]) -> None:
    given = {"spark.executor.cores": "2", "spark.executor.memory": "1g", **settings}

    assert _notes(given, "yarn", task_megabytes=256) == ()


def test_a_standalone_worker_does_not_count_pythons_memory() -> None:
    assert _notes({"spark.executor.memory": "512m"}, STANDALONE, task_megabytes=1024) == ()


@pytest.mark.parametrize(
    "settings",
    [{}, {"spark.authenticate": "true"}, {"spark.network.crypto.enabled": "true"}],
)
def test_credentials_in_plain_text_are_named(settings: dict[str, str]) -> None:
    (note,) = cluster_notes(settings, master=STANDALONE, tasks=1, task_memory_bytes=0)

    assert "spark.authenticate" in note


@pytest.mark.parametrize("settings", [_ENCRYPTED, {"spark.ssl.rpc.enabled": "true"}])
def test_either_encryption_of_spark_will_do(settings: dict[str, str]) -> None:
    assert cluster_notes(settings, master=STANDALONE, tasks=1, task_memory_bytes=0) == ()


def test_the_defaults_are_those_of_spark_submit_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# for all\nspark.cores.max 4\nspark.authenticate=true\n")

    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.cores.max": "4", "spark.authenticate": "true"}


def test_a_machine_without_defaults_has_none(tmp_path: Path) -> None:
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {}
    assert spark_defaults({"SPARK_HOME": str(tmp_path)}) == {}


def test_defaults_that_are_not_all_text_are_read_as_java_does(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_bytes(b"# caf\xe9\nspark.cores.max 4\n")

    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.cores.max": "4"}


def test_defaults_that_spark_cannot_read_are_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.cores.max \\uXYZ\n")

    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {}


def test_a_factor_that_is_no_number_is_left_to_spark() -> None:
    (note,) = _notes({"spark.executor.memoryOverheadFactor": "much"}, "yarn", task_megabytes=512)

    assert "384 MiB" in note
