"""`mirror heartbeat`: write heartbeats like MM2, and check clusters by those that arrived."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Annotated

import typer

from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_options import ConfigOption
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output, report_errors
from mirror_lib.config.loader import enabled_flow, load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.errors import LedgerError
from mirror_lib.ledger.location import existing_ledger, open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.heartbeats.flow import EmittedHeartbeat, HeartbeatCheck, HeartbeatEmitter, check_flow_heartbeats
from mirror_lib.sync.heartbeats.rules import describe, emitting_flows
from mirror_lib.sync.observed import save_heartbeats

#: Pairs of clusters that are named; a topic that other programs write to has heartbeats of more.
_EMITTERS_SHOWN = 20

app = command_group("heartbeat")

_AnyFlow = Annotated[str | None, typer.Option(help="Only this flow, SOURCE->TARGET; default: all flows.")]


@app.command()
@begin_with(report_errors)
def emit(
    output: Output,
    config: ConfigOption,
    flow: _AnyFlow = None,
    every: Annotated[float | None, typer.Option(min=0.1, help="Keep emitting a heartbeat every N seconds.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="With --every: stop after N rounds.")] = None,
) -> None:
    """Emit a heartbeat for each pair of clusters that has them enabled, into its target, as MirrorMaker 2 does.

    With --flow: only the heartbeats that monitor this flow (produced to its source by the reverse pair) and its own.
    """
    loaded = load(config)
    pairs = emitting_flows(loaded, None if flow is None else enabled_flow(loaded, flow).flow)
    if not pairs:
        output.note("No pair of clusters emits heartbeats: emit.heartbeats.enabled=false.")
    rounds = 1 if every is None else count
    with existing_ledger(loaded) or nullcontext() as ledger, HeartbeatEmitter(pairs, ledger) as emitter:
        done = 0
        while pairs and (rounds is None or done < rounds):
            if done and every is not None:
                time.sleep(every)
            emitted = emitter.emit()
            done += 1
            output.exit_code = max((each.error.exit_code for each in emitted if each.error), default=0)
            _show_emitted(output, emitted)


@app.command()
@begin_with(report_errors)
def check(
    output: Output,
    config: ConfigOption,
    flow: _AnyFlow = None,
    max_age: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Maximum age of a fresh heartbeat in seconds; default one minute plus twice the schedule's interval.",
        ),
    ] = None,
) -> None:
    """Show each upstream cluster by its heartbeats on the target: state, hops, age, latency.

    Exit code 1 unless all are fresh. The result is stored for `mirror metrics`, unless --max-age is set.
    """
    loaded = load(config)
    flows = loaded.enabled_flows if flow is None else (enabled_flow(loaded, flow),)
    with _ledger(loaded, output) as ledger:
        checks = [check_flow_heartbeats(each, ledger=ledger, max_age_seconds=max_age) for each in flows]
        # A result with another age limit than the schedule's is not for monitoring.
        if ledger is not None and max_age is None:
            for done in checks:
                save_heartbeats(ledger, done.flow, done.upstreams if done.source.hops is not None else ())
    for done in checks:
        _show_check(output, done)
    output.document({"checks": [done.to_dict() for done in checks]})
    output.exit_code = max((done.exit_code for done in checks), default=0)


@contextmanager
def _ledger(config: MirrorConfig, output: Output) -> Iterator[Ledger | None]:
    """Return the ledger; without it only the latency is missing."""
    try:
        ledger = open_ledger(config)
    except LedgerError as error:
        output.note(f"Latencies are unknown, because the ledger is not usable: {error.what}")
        yield None
        return
    with ledger:
        yield ledger


def _show_emitted(output: Output, emitted: tuple[EmittedHeartbeat, ...]) -> None:
    output.document({"emitted": [each.to_dict() for each in emitted]})
    for each in emitted:
        if each.error is None:
            output.note(f"{each.pair}: heartbeat {each.timestamp_ms} to {each.topic} on {each.cluster}")
        else:
            output.error(each.error)


def _show_check(output: Output, done: HeartbeatCheck) -> None:
    output.note(f"{done.flow}, maximum age {done.max_age_seconds:.0f} s:")
    for upstream in done.upstreams:
        output.note(f"  {describe(upstream)}")
        if upstream.topic is not None:
            output.note(f"    {upstream.topic}, emitted by {_listed(upstream.emitters)}")
    for remark in done.remarks:
        output.note(f"  {remark}")


def _listed(emitters: Sequence[str]) -> str:
    more = len(emitters) - _EMITTERS_SHOWN
    return ", ".join(emitters[:_EMITTERS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
