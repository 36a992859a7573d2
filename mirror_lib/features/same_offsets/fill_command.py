"""`mirror gaps fill`: a retention gap of a copy with the same offsets, accepted at once."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from mirror_lib.cli import (
    FlowCommand,
    GapPartitionOption,
    NoteOption,
    YesOption,
    begin_with,
    flow_command,
    is_confirmed,
    person,
)
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.counted import counted
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.same_offsets.fill_gaps import apply_fills, plan_fills
from mirror_lib.ledger.location import open_ledger
from mirror_lib.planning.flow_clusters import FlowClusters

app = typer.Typer()


@app.command("fill")
@begin_with(flow_command)
def fill(
    command: FlowCommand,
    topic: Annotated[str, typer.Option(help="The source topic.")],
    partition: GapPartitionOption = None,
    note: NoteOption = None,
    yes: YesOption = False,
) -> None:
    """Accept retention gaps of a flow with `mirror.offsets = same` at once: the target deletes the records before them.

    Without this, `mirror gaps accept` keeps these records and writes a marker for each offset of a gap.
    """
    output, settings = command.output, command.settings
    name = str(settings.flow)
    if not settings.copy_settings.same_offsets:
        raise ConfigurationError(
            f"flow {name} does not have mirror.offsets=same: its gaps need no filling.",
            action="`mirror gaps accept` continues after the gap.",
        )
    run_id = f"decision-{uuid.uuid4()}"
    with (
        open_ledger(command.file) as ledger,
        hold_lock(ledger, flow=name, run_id=run_id, lease_seconds=settings.run_lease_seconds) as lease,
        FlowClusters.connect(settings) as clusters,
    ):
        gaps = [gap for gap in ledger.open_gaps(name) if gap.topic == topic and partition in (None, gap.partition)]
        with output.progress(f"Comparing {topic}"):
            planned, errors = plan_fills(settings, clusters, ledger, gaps, run_id=run_id)
        output.document({"fills": [each.to_dict() for each in planned], "done": 0})
        for error in errors:
            output.error(error)
            output.exit_code = max(output.exit_code, error.exit_code)
        for each in planned:
            output.note(str(each))
        if not planned:
            output.note(f"Flow {name}: no retention gap of topic {topic} can be filled. Nothing was changed.")
        elif is_confirmed(output, f"Delete these records of {counted(len(planned), 'partition')}?", yes=yes):
            lease.check()
            failed, not_set_back = apply_fills(settings, clusters, ledger, planned, by=person(), note=note)
            for error in failed.values():
                output.error(error)
                output.exit_code = max(output.exit_code, error.exit_code)
            for text in not_set_back:
                output.note(text)
                output.exit_code = output.exit_code or 1
            output.document({"done": len(planned) - len(failed), "not_set_back": list(not_set_back)})
            output.note(
                f"Done for {counted(len(planned) - len(failed), 'partition')}; the decision is in the ledger. The next "
                "run fills the gap before it copies."
            )
