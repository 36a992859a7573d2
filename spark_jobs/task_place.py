"""The partition and attempt of a task in its Spark job."""

from __future__ import annotations

from typing import NamedTuple


class TaskPlace(NamedTuple):
    """The number of a task's partition, which is also the number of its bin in all stages, and of its attempt."""

    number: int
    attempt: int


def task_place() -> TaskPlace:
    """The place of the task that runs here; partition 0 and attempt 0 outside of tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return TaskPlace(0, 0) if context is None else TaskPlace(context.partitionId(), context.attemptNumber())
