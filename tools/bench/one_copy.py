"""One copy of a flow in this process, and its cost: for `./run bench against`."""

from __future__ import annotations

import json
import resource
import sys
import time

from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.sync.topics.flow import apply_flow_topics


def main(path: str, name: str) -> None:
    """Copy, and print the cost as JSON. `bench against` of later checkouts calls this: arguments and output stay."""
    spent = {"user": 0.0, "system": 0.0, "seconds": 0.0}

    def copy(job: CopyJob) -> list[PartitionResult]:
        # In microseconds; `os.times` counts in hundredths of a second.
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        results = [result for number in range(len(job.bins)) for result in copy_bin(job, number)]
        after = resource.getrusage(resource.RUSAGE_SELF)
        spent["user"] += after.ru_utime - before.ru_utime
        spent["system"] += after.ru_stime - before.ru_stime
        spent["seconds"] += time.monotonic() - began
        return results

    flow = load(path).flow(name)
    ledger = Ledger.open(f"sqlite:///{path}.sqlite3")
    ledger.migrate()
    apply_flow_topics(flow, flow_topology(flow))
    report = replicate(flow, ledger=ledger, make_runner=lambda: copy, options=RunOptions(trigger="bench"))
    if report.errors:
        raise report.errors[0]
    sys.stdout.write(json.dumps({"records": report.records, **spent}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
