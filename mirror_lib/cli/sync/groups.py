"""`mirror groups`: where consumer groups continue on the target, and committing these offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import TopicsOption, capped_table
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.config.topology import group_filter
from mirror_lib.counted import counted
from mirror_lib.offsets.group_standing import GroupReason, is_behind
from mirror_lib.sync.groups.flow import GroupSync, apply_flow_groups, plan_flow_groups
from mirror_lib.sync.groups.model import GroupRow
from mirror_lib.sync.observed import save_groups

app = command_group("groups")

_PLACE_COLUMNS = ("group", "topic", "partition", "committed", "target offset", "duplicates", "skipped", "on the target")
_CHANGE_COLUMNS = (*_PLACE_COLUMNS, "checkpoint", "commit")
_ROW_COLUMNS = (*_PLACE_COLUMNS, "reason", "what")
_FINDING_COLUMNS = ("group", "reason", "what")
_NO_GROUP = ("group-not-replicated", "group-not-found")

_GroupOption = Annotated[str | None, typer.Option(help="Show only this group; also limits counts and exit code.")]


@app.command()
@begin_with(flow_command)
def plan(command: FlowCommand, topics: TopicsOption = None, group: _GroupOption = None) -> None:
    """Show due checkpoints and commits; changes nothing. Exit code 3 if a group cannot be read."""
    done = _plan(command, topics, group)
    _begin(command.output, done)
    changes = [row for row in done.plan.rows if row.emit or row.commit]
    capped_table(command.output, "changes", _CHANGE_COLUMNS, [_change(row) for row in changes])
    _end(command.output, done)


@app.command()
@begin_with(flow_command)
def apply(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Emit checkpoints now and, if enabled, commit the offsets of groups without members on the target.

    Exit code 3 if a group cannot be read or the target rejects its offsets; 1 if no run can translate some offsets.
    """
    output = command.output
    with command.known_ledger("Synchronizing the groups of") as known:
        done = apply_flow_groups(command.settings, command.topology(topics), ledger=known)
        if known is not None and not topics:
            save_groups(known, done.plan, applied=True)
    if topics:
        done = replace(done, plan=done.plan.of_requested_topics())
    _begin(output, done)
    _show_reasons(output, ((row, row.reason) for row in done.plan.rows))
    _end(output, done)
    output.exit_code = output.exit_code or int(bool(done.plan.never_translated))


@app.command()
@begin_with(flow_command)
def status(command: FlowCommand, topics: TopicsOption = None, group: _GroupOption = None) -> None:
    """List every group and partition that is not in sync, with its reason; changes nothing.

    Topics that the flow does not copy are ignored. Exit code 0 if all are in sync, 1 if some are not or an internal
    topic contains malformed records, 3 if a group cannot be read.
    """
    output = command.output
    done = _plan(command, topics, group, present=True)
    _begin(output, done)
    _show_reasons(output, ((row, row.present_reason) for row in done.plan.rows))
    present = done.plan.counts(present=True)
    output.values("reasons", present)
    if not present and not done.plan.findings and not done.plan.notices:
        output.note("No group that the flow selects has committed an offset for one of its topics.")
    _notices(output, done)
    if any(map(is_behind, present)) or done.plan.notices:
        output.exit_code = output.exit_code or 1


def _plan(command: FlowCommand, topics: Sequence[str] | None, group: str | None, *, present: bool = False) -> GroupSync:
    """Return the plan for the selection; with `present`, rejections of the last apply are shown, too."""
    settings = command.settings
    with command.known_ledger("Reading the groups of") as known:
        done = plan_flow_groups(settings, command.topology(topics), ledger=known)
        if present and known is not None:
            done = replace(done, plan=done.plan.with_refusals(known.observations.groups(str(settings.flow))))
    if topics:
        done = replace(done, plan=done.plan.of_requested_topics())
    if group is None:
        return done
    taken = group_filter(settings).should_replicate_group(group)
    return replace(done, plan=done.plan.of_group(group, taken=taken))


def _begin(output: Output, done: GroupSync) -> None:
    # A plan for one group without that group is not a success.
    output.exit_code = done.exit_code or int(any(each.reason in _NO_GROUP for each in done.plan.findings))
    output.document(done.to_dict())


def _end(output: Output, done: GroupSync) -> None:
    summary = done.plan.summary()
    output.values("reasons", summary["reasons"])
    verb = "wrote" if done.applied else "would write"
    commits = f"{'committed' if done.applied else 'commit'} {counted(summary['commits'], 'offset')}"
    output.note(
        f"{verb} {counted(summary['checkpoints'], 'checkpoint')} and {commits}: {counted(summary['groups'], 'group')}, "
        f"{counted(summary['partitions'], 'group and partition', 'groups and partitions')}"
    )
    _notices(output, done)


def _notices(output: Output, done: GroupSync) -> None:
    if not done.plan.target_read:
        output.note("sync.group.offsets.enabled is false: committed offsets on the target are not read.")
    for notice in (*done.plan.notices, *done.plan.never_translated, *done.plan.remarks):
        output.note(notice)
    findings = [(finding.group, finding.reason.value, finding.what) for finding in done.plan.findings]
    capped_table(output, "skipped_groups", _FINDING_COLUMNS, findings)


def _show_reasons(output: Output, rows: Iterable[tuple[GroupRow, GroupReason | None]]) -> None:
    """Show the reasons of positions that are not in sync."""
    cells = [(*_place(row), reason.value, row.what) for row, reason in rows if reason is not None]
    capped_table(output, "not_in_sync", _ROW_COLUMNS, cells)


def _change(row: GroupRow) -> tuple[object, ...]:
    return (*_place(row), row.emit, row.commit)


def _place(row: GroupRow) -> tuple[object, ...]:
    return (row.group, *row.source, row.upstream, row.target_offset, row.duplicates, row.skipped, row.target_committed)
