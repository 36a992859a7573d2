"""What a plan says of new targets with the same offsets."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from mirror_lib.cli import ConsoleOutput
from mirror_lib.config.loader import load
from mirror_lib.features.same_offsets.shown import look_at_plan
from mirror_lib.planning.model import RunPlan
from tests.support.brokers.partitions import partition_plan
from tests.support.flow_files import write_flow

SAME = ("A->B.mirror.offsets = same", "mirror.offsets.pad.max.records = 1000")


def told(folder: Path, *lines: str) -> str:
    """The notes about a plan of four partitions: new ones from offsets 0, 700 and 5,000, and one that is copied."""
    (flow,) = load(write_flow(folder, *lines)).enabled_flows
    new = [partition_plan(start=start, end=9_000) for start in (0, 700, 5_000)]
    plan = RunPlan(
        flow.flow, bins=((*new, partition_plan(start=800, end=9_000, copy="same-run")),), problems=(), idle=0
    )
    text = StringIO()
    look_at_plan(flow, plan, None)(ConsoleOutput(Console(file=text, width=500, highlight=False)))
    return text.getvalue()


def test_a_plan_says_how_far_new_targets_are_filled_and_which_are_refused(tmp_path: Path) -> None:
    assert told(tmp_path) == ""

    notes = told(tmp_path, *SAME).splitlines()

    assert len(notes) == 2
    assert "new targets of 1 partition are filled up to the source's first offsets" in notes[0]
    assert "700 records without content" in notes[0]
    assert "1 partition will be refused: the source begins behind offset 1,000" in notes[1]
