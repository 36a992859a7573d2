"""Flows without the topics that a cutover has handed over, as the ledger has them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from mirror_lib.config.loader import enabled_flow, load
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.ledger.location import existing_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.handovers import Handovers
from mirror_lib.topology.names import FlowId


def load_flow_as_it_runs(path: Path | str, flow: str) -> tuple[MirrorConfig, FlowConfig]:
    """As `config.loader.load_flow`, without the topics that cutovers have handed over.

    Raises:
        ConfigurationError: as `load_flow`.
        LedgerError: the ledger cannot be used.
    """
    config = load(path)
    with existing_ledger(config) or nullcontext() as ledger:
        config = all_with_handovers(config, ledger)
    return config, enabled_flow(config, flow)


def with_handovers(flow: FlowConfig, ledger: Ledger | None) -> FlowConfig:
    """The flow without the topics that cutovers have handed over.

    Args:
        ledger: None if there is none yet: then nothing was handed over.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    return flow if ledger is None else _apply(flow, ledger.handovers.handed_over())


def all_with_handovers(config: MirrorConfig, ledger: Ledger | None) -> MirrorConfig:
    """As `with_handovers`, for all flows of a file."""
    rows = () if ledger is None else ledger.handovers.handed_over()
    if not rows:
        return config
    flows = tuple(_apply(flow, rows) for flow in config.flows)
    return config.model_copy(
        update={"flows": flows, "unnamed": config.unnamed.changed(lambda pair: _apply(pair, rows))}
    )


def opposite_of(config: MirrorConfig, flow: FlowConfig) -> FlowConfig | None:
    """The flow of the file from this one's target to its source, enabled or not."""
    return config.find(flow.flow.opposite)


def enabled_opposite_of(config: MirrorConfig, flow: FlowConfig) -> FlowConfig | None:
    """As `opposite_of`; None if that flow is disabled."""
    found = opposite_of(config, flow)
    return found if found is not None and found.enabled else None


def _apply(flow: FlowConfig, rows: Sequence[HandedOverRow]) -> FlowConfig:
    # Backfills and other work next to a flow follow the same rules.
    name, back = str(FlowId(flow.flow.source, flow.flow.target)), str(flow.flow.opposite)
    away = frozenset(row.topic for row in rows if row.flow == name)
    here = frozenset(row.target_topic for row in rows if row.flow == back)
    return flow.model_copy(update={"handovers": Handovers(away, here)})
