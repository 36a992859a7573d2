"""Jobs that are opened only by workers with the same classes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import make_dataclass
from enum import Enum
from typing import Any

import pytest
from pyspark.errors import PySparkException

from mirror_lib.cluster.connection import Connection
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.verify.model import VerifyJob
from mirror_lib.relay.model import CopyJob
from mirror_lib.topology.names import FlowId
from spark_jobs.copy_task import COPY_CLASSES, copy_bins
from spark_jobs.failures import spark_failure
from spark_jobs.sealing import fields_of, seal, stamp, unseal
from spark_jobs.verify_task import VERIFY_CLASSES, verify_bins
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


@pytest.mark.parametrize(("given", "classes"), [(_copy_job(), COPY_CLASSES), (_verify_job(), VERIFY_CLASSES)])
def test_the_same_version_opens_what_was_sealed(given: object, classes: tuple[type, ...]) -> None:
    assert unseal(*seal(given, classes), classes) == given


@pytest.mark.parametrize("task", [copy_bins, verify_bins])
def test_a_task_of_another_version_is_refused_unopened(task: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"the job's driver has 9\.9/0\.") as caught:
        list(task("9.9/0", pickle.dumps(Unopened()), []))

    assert "mirror spark pack" in caught.value.action


def test_spark_says_the_same_in_the_driver_also_of_workers_from_before_there_was_a_stamp() -> None:
    with pytest.raises(ConfigurationError) as caught:
        unseal("9.9/0", b"", COPY_CLASSES)
    told = f"Traceback ...\nmirror_lib.errors.ConfigurationError: {caught.value}\n"

    error = spark_failure(PySparkException(told), "the copy", "A->B")

    assert type(error) is ConfigurationError
    assert (error.what, error.action) == (caught.value.what, caught.value.action)
    assert error.where == Where(flow="A->B")
    old = PySparkException("TypeError: copy_bins() takes 2 positional arguments but 3 were given")
    assert type(spark_failure(old, "the copy", "A->B")) is ConfigurationError


def test_any_change_of_the_fields_changes_the_stamp() -> None:
    start, end = ("start", int), ("end", int)
    before = make_dataclass("Plan", [start, end])
    assert stamp((before,)) == stamp((make_dataclass("Plan", [start, end]),))

    for fields in ([end, start], [start], [start, end, ("next", int)], [start, ("end", str)], [start, ("stop", int)]):
        after = make_dataclass("Plan", fields)
        assert stamp((before,)) != stamp((after,)), fields
        assert stamp((_holder(before),)) != stamp((_holder(after),)), fields


def _holder(held: type) -> type:
    kind: Any = held
    return make_dataclass("Job", [("bins", tuple[tuple[kind, ...], ...] | None)])


def test_a_value_of_an_enumeration_counts() -> None:
    def policy(value: str) -> Any:
        class Policy(Enum):
            FAIL = value

        return Policy

    assert fields_of([policy("fail")]) != fields_of([policy("FAIL")])
    assert fields_of([policy("fail")]) == fields_of([policy("fail")])


def test_all_that_a_copy_holds_counts() -> None:
    held = {line.partition(" ")[0].rpartition(".")[2] for line in fields_of(COPY_CLASSES)}

    assert held >= {
        *("CopyJob", "OpenPartition", "PartitionPlan", "Takeover", "OffsetRun", "OmittedRange", "RecordRules"),
        *("Connection", "Security", "Tls", "CopySettings", "PoisonPolicy", "FlowId", "TopicPartition"),
        *("PositionTopic", "PartitionResult", "Poison"),
    }


def test_every_process_gets_the_same_stamp() -> None:
    program = "from spark_jobs.copy_task import *; from spark_jobs.sealing import stamp; print(stamp(COPY_CLASSES))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == stamp(COPY_CLASSES)
