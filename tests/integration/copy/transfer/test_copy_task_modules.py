"""What a copy task loads: a worker is started for each, so every import costs all of them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from mirror_lib.planning.model import CopyJob, PartitionResult
from spark_jobs.copy_results import COPY_RESULTS
from spark_jobs.sealing import seal
from tests.support.kafka import records, values
from tests.support.mirrored_topic import MirroredTopic

_MOST_MODULES = 110
_TASK = """
import pickle, sys
import spark_jobs.copy_task
from mirror_lib.copy.transfer.task import copy_attempt
from spark_jobs.sealing import unseal

with open(sys.argv[2], "rb") as file:
    job = unseal(sys.argv[1], file.read())
results = copy_attempt(job, 0, 0)
sys.stdout.buffer.write(pickle.dumps((results, sorted(sys.modules))))
"""


def test_after_a_copied_bin_a_task_has_loaded_no_feature_and_not_the_configurations_loader(
    mirrored: MirroredTopic, tmp_path: Path
) -> None:
    written = mirrored.create(records(50))
    loaded: list[str] = []

    def in_a_worker(job: CopyJob) -> list[PartitionResult]:
        stamp, sealed = seal(job, COPY_RESULTS)
        (tmp_path / "job").write_bytes(sealed)
        words = [sys.executable, "-c", _TASK, stamp, str(tmp_path / "job")]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
        results, modules = pickle.loads(done.stdout)
        loaded.extend(modules)
        return list(results)

    assert mirrored.flow().run(runner=in_a_worker).records == 50

    assert values(mirrored.copied()) == values(written)
    own = [each for each in loaded if each.partition(".")[0] in ("mirror_lib", "spark_jobs")]
    assert [each for each in own if "features" in each or each == "mirror_lib.config.loader"] == []
    assert "pydantic" not in loaded
    assert len(own) <= _MOST_MODULES, own
