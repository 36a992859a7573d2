"""What is said of a Spark cluster before a job goes there."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.spark.cluster_check import cluster_notes, cores_at_most
from mirror_lib.spark.submit import spark_defaults

_MEBIBYTE = 1024 * 1024
_ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
STANDALONE = "spark://master:7077"


def _notes(settings: dict[str, str], master: str, *, tasks: int = 1, task_megabytes: int = 64) -> tuple[str, ...]:
    return cluster_notes(
        {**_ENCRYPTED, **settings}, master=master, tasks=tasks, task_memory_bytes=task_megabytes * _MEBIBYTE
    )


def test_nothing_is_said_of_one_machine_and_of_a_server_that_runs_already() -> None:
    for master in ("local", "local[*]", "local[4]", "sc://server"):
        assert cluster_notes({}, master=master, tasks=100, task_memory_bytes=1 << 40) == (), master


def test_cores_are_counted_as_the_cluster_gives_them() -> None:
    dynamic = {"spark.dynamicAllocation.enabled": "true"}
    for master, settings, cores in (
        (STANDALONE, {}, None),
        (STANDALONE, {"spark.cores.max": "6", "spark.executor.cores": "2"}, 6),
        ("yarn", {}, 2),
        ("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12),
        ("k8s://https://server", {"spark.executor.instances": "3"}, 3),
        ("yarn", dynamic, None),
        ("yarn", {**dynamic, "spark.dynamicAllocation.maxExecutors": "5"}, 5),
    ):
        assert cores_at_most(settings, master) == cores, (master, settings)


def test_bins_that_wait_for_a_core_are_named_and_a_core_for_each_is_enough() -> None:
    (note,) = _notes({"spark.cores.max": "4", "spark.task.cpus": "2"}, STANDALONE, tasks=3)

    assert "2 tasks in parallel" in note
    assert "up to 3 (tasks.max)" in note
    assert _notes({"spark.cores.max": "4"}, STANDALONE, tasks=4) == ()


def test_a_container_without_room_for_python_is_named_unless_a_setting_of_spark_gives_it() -> None:
    """Two tasks of 256 + 100 MiB; the container adds 384 MiB to a heap of 1 GiB, the least that Spark adds."""
    settings = {"spark.executor.cores": "2", "spark.executor.memory": "1g"}

    (note,) = _notes(settings, "yarn", task_megabytes=256)

    assert "712 MiB" in note
    assert "384 MiB" in note
    for name, value in (
        ("spark.executor.memoryOverhead", "1g"),
        ("spark.executor.memoryOverhead", "800"),
        ("spark.executor.pyspark.memory", "400m"),
        ("spark.executor.memoryOverheadFactor", "0.8"),
    ):
        assert _notes({**settings, name: value}, "yarn", task_megabytes=256) == (), (name, value)
    # A standalone worker does not count Python's memory.
    assert _notes({"spark.executor.memory": "512m"}, STANDALONE, task_megabytes=1024) == ()
    # A factor that is no number is left to Spark.
    (note,) = _notes({"spark.executor.memoryOverheadFactor": "much"}, "yarn", task_megabytes=512)
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


def test_credentials_in_plain_text_are_named_and_either_encryption_of_spark_will_do() -> None:
    def notes(settings: dict[str, str]) -> tuple[str, ...]:
        return cluster_notes(settings, master=STANDALONE, tasks=1, task_memory_bytes=0)

    for settings in ({}, {"spark.authenticate": "true"}, {"spark.network.crypto.enabled": "true"}):
        (note,) = notes(settings)
        assert "spark.authenticate" in note
    assert notes(_ENCRYPTED) == notes({"spark.ssl.rpc.enabled": "true"}) == ()


def test_the_defaults_are_those_of_spark_submit_on_this_machine(tmp_path: Path) -> None:
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {}
    assert spark_defaults({"SPARK_HOME": str(tmp_path)}) == {}

    for content, defaults in {
        b"# for all\nspark.cores.max 4\nspark.authenticate=true\n": {
            "spark.cores.max": "4",
            "spark.authenticate": "true",
        },
        # Not all of it is text: as Java reads it.
        b"# caf\xe9\nspark.cores.max 4\n": {"spark.cores.max": "4"},
        # What Spark cannot read is left to Spark.
        b"spark.cores.max \\uXYZ\n": {},
    }.items():
        (tmp_path / "spark-defaults.conf").write_bytes(content)
        assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == defaults, content
