"""Check whether a cluster is set up for the jobs, by Spark's settings on the submitting machine.

The names and defaults are those of Spark's "Configuration", "Running Spark on YARN" and "Running Spark on Kubernetes".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from mirror_lib.spark.submit import runs_here

#: Memory of a Python worker in addition to its task's budget: the interpreter, the modules, Arrow.
WORKER_MEGABYTES = 100
#: The same with transforms: it includes rows, Arrow's batches and the memory of a codec.
TRANSFORMING_WORKER_MEGABYTES = 250
_MEBIBYTE = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_IN_MEGABYTES = {"": 1.0, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
#: Spark's default for YARN and Kubernetes.
_USUAL_EXECUTORS = 2
_LEAST_OVERHEAD = 384.0
_OVERHEAD = {"yarn": 0.1, "k8s": 0.4}


def cluster_notes(
    settings: Mapping[str, str], *, master: str, tasks: int, task_memory_bytes: int, transforms: bool = False
) -> tuple[str, ...]:
    """Notes for the operator before a job with these settings is submitted to a cluster; empty if there are none.

    Args:
        settings: Spark's settings from all sources.
        master: Spark's master URL; there are no notes for a local one.
        tasks: maximum number of tasks, from `tasks.max` or the run's own choice.
        task_memory_bytes: `mirror.task.memory.bytes`.
        transforms: whether the flow has transforms.
    """
    worker = TRANSFORMING_WORKER_MEGABYTES if transforms else WORKER_MEGABYTES
    if runs_here(master) or master.startswith("sc:"):
        return ()
    found = (
        _too_few_cores(settings, master, tasks),
        _too_little_memory(settings, master, task_memory_bytes, worker),
        _plain_text(settings),
    )
    return tuple(note for note in found if note)


def cores_at_most(settings: Mapping[str, str], master: str) -> int | None:
    """Number of cores of all executors of the job; None if the cluster decides."""
    if master.startswith("spark:"):
        return _whole(settings.get("spark.cores.max"))
    if _is_on(settings, "spark.dynamicAllocation.enabled"):
        executors = _whole(settings.get("spark.dynamicAllocation.maxExecutors"))
    else:
        executors = _whole(settings.get("spark.executor.instances")) or _USUAL_EXECUTORS
    return None if executors is None else executors * (_whole(settings.get("spark.executor.cores")) or 1)


def _too_few_cores(settings: Mapping[str, str], master: str, tasks: int) -> str:
    cores = cores_at_most(settings, master)
    at_once = None if cores is None else cores // (_whole(settings.get("spark.task.cpus")) or 1)
    if at_once is None or at_once >= tasks:
        return ""
    return (
        f"Spark's executors run {at_once} tasks in parallel, but this flow has up to {tasks} (tasks.max): the other "
        "bins wait. Give Spark more cores (spark.executor.instances, spark.executor.cores; spark.cores.max on a "
        "standalone cluster), or lower tasks.max."
    )


def _too_little_memory(settings: Mapping[str, str], master: str, task_memory_bytes: int, worker: int) -> str:
    """Note for too little memory: Python's memory is outside of the JVM, and a standalone worker ignores it."""
    factor = next((factor for prefix, factor in _OVERHEAD.items() if master.startswith(prefix)), None)
    if factor is None:
        return ""
    with suppress(ValueError):
        # Spark itself refuses an invalid number.
        factor = float(settings.get("spark.executor.memoryOverheadFactor", ""))
    memory = _megabytes(settings.get("spark.executor.memory")) or 1024.0
    overhead = _megabytes(settings.get("spark.executor.memoryOverhead")) or max(memory * factor, _LEAST_OVERHEAD)
    given = overhead + (_megabytes(settings.get("spark.executor.pyspark.memory")) or 0.0)
    cores = _whole(settings.get("spark.executor.cores")) or 1
    at_once = max(cores // (_whole(settings.get("spark.task.cpus")) or 1), 1)
    needed = at_once * (task_memory_bytes / _MEBIBYTE + worker)
    if given >= needed:
        return ""
    return (
        f"An executor's {at_once} tasks may take {needed:.0f} MiB in addition to the JVM (mirror.task.memory.bytes "
        f"and {worker} MiB each), but its container has {given:.0f} MiB for them: it may be killed. Raise "
        "spark.executor.memoryOverhead, or lower mirror.task.memory.bytes."
    )


def _plain_text(settings: Mapping[str, str]) -> str:
    # Spark's own protocol only encrypts with a secret that both sides have.
    own = _is_on(settings, "spark.authenticate") and _is_on(settings, "spark.network.crypto.enabled")
    if own or _is_on(settings, "spark.ssl.rpc.enabled"):
        return ""
    return (
        "Spark sends tasks, and with them the credentials of both clusters, in plain text, according to this "
        "machine's spark-defaults.conf. On a network that others can read, set spark.authenticate and "
        "spark.network.crypto.enabled."
    )


def _is_on(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "").lower() == "true"


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _megabytes(text: str | None) -> float | None:
    """A memory size in Spark's format, in MiB if it has no unit."""
    found = _SIZE.fullmatch((text or "").strip())
    return None if found is None else int(found[1]) * _IN_MEGABYTES[found[2].lower()]
