"""Where in its Spark job a task stands."""

from __future__ import annotations

from typing import NamedTuple


class TaskPlace(NamedTuple):
    """The number of a task's partition, which is that of its bin all the way through a job, and of its attempt."""

    number: int
    attempt: int


def task_place() -> TaskPlace:
    """Of the task that runs here; the first of all where there is none."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return TaskPlace(0, 0) if context is None else TaskPlace(context.partitionId(), context.attemptNumber())
