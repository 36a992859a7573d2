"""Drivers that die between the copy and its positions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import Flow, copy_here


class DriverKilledError(Exception):
    """Stands for the end of the driver between the copy and its positions."""


def killed_after(copied: Callable[[CopyJob], CopyJob] = lambda job: job) -> Callable[[CopyJob], list[PartitionResult]]:
    """A runner that copies (a part of) the job and whose driver then dies: its positions stay open."""

    def run(job: CopyJob) -> list[PartitionResult]:
        copy_here(copied(job))
        raise DriverKilledError

    return run


def up_to(end: int) -> Callable[[CopyJob], CopyJob]:
    """The job cut short, as if it had been killed in mid-copy."""

    def shorten(job: CopyJob) -> CopyJob:
        return replace(
            job,
            bins=tuple(
                tuple(replace(each, plan=replace(each.plan, end=min(each.plan.end, end))) for each in bin_)
                for bin_ in job.bins
            ),
        )

    return shorten


def interrupted(flow: Flow, how: Callable[[CopyJob], list[PartitionResult]], **options: Any) -> None:
    """A run of this flow whose driver dies; options as in `Flow.run`."""
    with pytest.raises(DriverKilledError):
        flow.run(runner=how, **options)


def asleep(flow: Flow, **options: Any) -> CopyJob:
    """The copy of a run that sleeps since it has claimed its partitions; its driver is gone."""
    jobs: list[CopyJob] = []

    def sleep(job: CopyJob) -> list[PartitionResult]:
        jobs.append(job)
        raise DriverKilledError

    interrupted(flow, sleep, **options)
    return jobs[0]


def claimed(job: CopyJob, *, seconds_ago: float) -> CopyJob:
    """The job with claims of this age: after more than five seconds its tasks check the log before they send."""
    at = time.time() - seconds_ago
    return replace(job, bins=tuple(tuple(replace(each, claimed_at=at) for each in bin_) for bin_ in job.bins))
