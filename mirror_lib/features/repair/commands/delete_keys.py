"""`mirror gaps delete-keys`: deletions that a compacted source has forgotten, written as tombstones."""

from __future__ import annotations

import re
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
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.repair.commands.decision_lock import locked_flow
from mirror_lib.features.repair.key_deletions import delete_keys as write
from mirror_lib.features.repair.key_deletions import plan_key_deletion
from mirror_lib.features.verify.state.lost import find_lost_deletions
from mirror_lib.identity.clusters import check_clusters

app = typer.Typer()


@app.command("delete-keys")
@begin_with(flow_command)
def delete_keys(
    command: FlowCommand,
    topic: Annotated[str, typer.Option(help="The source topic.")],
    partition: GapPartitionOption = None,
    show: Annotated[int, typer.Option(min=0, help="Number of keys to show per partition.")] = 10,
    note: NoteOption = None,
    yes: YesOption = False,
) -> None:
    """Write tombstones for keys that a compacted source has deleted and whose deletion was not copied."""
    output, settings = command.output, command.settings
    name = str(settings.flow)
    with locked_flow(command.file, settings) as (ledger, lease, clusters, run_id):
        check_clusters(settings, ledger, clusters.ids())
        with output.progress(f"Comparing the state of {topic}"):
            chosen = () if partition is None else (partition,)
            found, impossible = find_lost_deletions(settings, ledger, (re.escape(topic),), chosen, lambda _: None)
            if not found and not impossible:
                raise ConfigurationError(
                    f"topic {topic} has no partition to compare by state: it is not compacted on the source, or "
                    f"flow {name} has not copied it.",
                    action="Check that its cleanup.policy contains compact, and that `mirror position show` lists it.",
                )
            planned = [
                plan_key_deletion(
                    settings,
                    clusters,
                    each.source,
                    each.target,
                    set(each.offsets.tolist()),
                    source_read_to=each.source_read_to,
                )
                for each in found
                if len(each.offsets)
            ]
        output.document({"deletions": [each.to_dict() for each in planned], "deleted": 0})
        for refused in impossible:
            output.note(f"{refused.source}: [{refused.reason}] {refused.detail}")
            output.exit_code = 1
        for each in planned:
            output.note(str(each))
            for key in each.keys[:show]:
                output.note(f"  {key!r}")
        others = sum(each.others for each in found)
        if others:
            output.note(f"{others:,} differences are of other kinds: `mirror verify --mode state` lists them.")
        total = sum(len(each.keys) for each in planned)
        if not total:
            output.note(f"Flow {name}: the target has no key of {topic} that the source has deleted.")
        elif is_confirmed(output, f"Write {total:,} tombstones to the target?", yes=yes):
            done = 0
            for each in planned:
                lease.check()
                done += write(settings, clusters, ledger, lease, each, run_id=run_id, by=person(), note=note)
            output.document({"deleted": done})
            output.note(f"{done:,} tombstones were written; the decision is in the ledger (`mirror gaps list`).")
