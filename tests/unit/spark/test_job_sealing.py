"""Jobs that are opened only by workers with the same classes."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from pyspark.errors import PySparkException

from mirror_lib.cluster.connection import Connection
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.features.verify.model import VerifyJob
from mirror_lib.planning.model import CopyJob
from mirror_lib.topology.names import FlowId
from spark_jobs.copy_results import COPY_RESULTS
from spark_jobs.copy_task import copy_bins
from spark_jobs.failures import spark_failure
from spark_jobs.sealing import seal, stamp, unseal
from spark_jobs.transforms.verify_transformed import DIGEST_RESULTS, ROW_RESULTS
from spark_jobs.verify import VERIFY_RESULTS
from spark_jobs.verify_task import verify_bins
from tests.support.brokers.fake_cluster import FakeCluster, fill, job, opened


class Unopened:
    """Bytes that must not be unpickled."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was opened",))


def _copy_job() -> CopyJob:
    source, target = FakeCluster(), FakeCluster()
    fill(source.add("orders"), [100])
    fill(target.add("A.orders"), [])
    return job(opened(source, target))


def _verify_job() -> VerifyJob:
    here = Connection("A", ("localhost:1",))
    return VerifyJob(flow=FlowId("A", "B"), source=here, target=here, read_committed=False, bins=())


@pytest.mark.parametrize("given", [_copy_job(), _verify_job()])
def test_the_same_version_opens_what_was_sealed(given: object) -> None:
    assert unseal(*seal(given)) == given


@pytest.mark.parametrize("task", [copy_bins, verify_bins])
def test_a_task_of_another_version_is_refused_unopened(task: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"the job's driver has 9\.9/0\.") as caught:
        list(task("9.9/0", pickle.dumps(Unopened()), []))

    assert "mirror spark pack" in caught.value.action


def test_spark_says_the_same_in_the_driver_also_of_workers_from_before_there_was_a_stamp() -> None:
    with pytest.raises(ConfigurationError) as caught:
        unseal("9.9/0", b"")
    told = f"Traceback ...\nmirror_lib.errors.ConfigurationError: {caught.value}\n"

    error = spark_failure(PySparkException(told), "the copy", "A->B")

    assert type(error) is ConfigurationError
    assert (error.what, error.action) == (caught.value.what, caught.value.action)
    assert error.where == Where(flow="A->B")
    old = PySparkException("TypeError: copy_bins() takes 2 positional arguments but 3 were given")
    assert type(spark_failure(old, "the copy", "A->B")) is ConfigurationError


def test_the_stamp_names_the_modules_of_the_jobs_classes_of_their_bases_and_of_the_results() -> None:
    class Further(CopyJob):
        """A class that inherits its fields."""

    stamp_of_job, _ = seal(_copy_job(), (Further,))

    assert {"mirror_lib.planning.model", "mirror_lib.cluster.connection", "mirror_lib.errors", __name__} <= {
        *stamp_of_job.partition(" ")[2].split(",")
    }


def test_any_change_of_a_modules_source_changes_the_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    classes, other = tmp_path / "sealed_classes.py", tmp_path / "other_classes.py"
    stamps = []
    for start, rest in (("int", ""), ("str", ""), ("int", "changed")):
        classes.write_text(f"start: {start}")
        other.write_text(rest)
        importlib.invalidate_caches()
        stamps.append(stamp(["sealed_classes"]))

    assert stamps[0] == stamps[2] != stamps[1]
    classes.unlink()
    importlib.invalidate_caches()
    assert stamp(["sealed_classes"]) not in stamps


@pytest.mark.parametrize("named", [COPY_RESULTS, VERIFY_RESULTS, ROW_RESULTS, DIGEST_RESULTS])
def test_every_module_of_a_result_is_named(named: tuple[type, ...]) -> None:
    modules = {each.__module__ for each in (*named, MirrorError)}

    assert {each.__module__ for each in _classes_below(named)} <= modules


def _classes_below(kinds: tuple[type, ...]) -> set[type]:
    """The project's classes in the fields of these classes."""
    found: set[type] = set()
    todo: list[Any] = list(kinds)
    while todo:
        kind = todo.pop()
        todo += get_args(kind)
        if isinstance(kind, type) and kind.__module__.startswith("mirror_lib") and kind not in found:
            found.add(kind)
            todo += get_type_hints(kind).values()
    return found
