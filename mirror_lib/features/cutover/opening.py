"""Find cutovers in the ledger, and define failback cutovers."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.config.model import MirrorConfig
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.cutover.model import CutoverDefinition
from mirror_lib.features.cutover.records import definition_of
from mirror_lib.features.cutover.scope import exactly
from mirror_lib.features.cutover.states.cutover import Event
from mirror_lib.features.cutover.states.situation import require, situation_of
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.handovers import enabled_opposite_of
from mirror_lib.ledger.store import Ledger


def open_cutover(ledger: Ledger, name: str, *, flow: str | None = None) -> CutoverDefinition:
    """Return the definition of a cutover.

    Args:
        flow: the only flow whose cutovers the caller may use, as a DAG; None for all.

    Raises:
        ConfigurationError: there is none of that name, or it is a cutover of another flow; nothing else is said of it.
    """
    row = Cutovers(ledger).find(name)
    if row is not None and flow in (None, row.flow):
        return definition_of(row)
    of_flow = "" if flow is None else f" of flow {flow}"
    known = ", ".join(each.name for each in Cutovers(ledger).newest(flow, limit=10)) or "none"
    raise ConfigurationError(
        f"there is no cutover {name!r}{of_flow}" + (", and another flow has one of that name." if row else "."),
        action=f"The newest cutovers{of_flow}: {known}.",
    )


def failback_of(config: MirrorConfig, ledger: Ledger, name: str, new_name: str | None = None) -> CutoverDefinition:
    """Return the cutover that moves the topics and groups of another one back, by the failback flow.

    Raises:
        ConfigurationError: there is no such cutover, it has not moved anything yet, or there is no failback flow.
    """
    there = open_cutover(ledger, name)
    require(situation_of(ledger, name), Event.BRING_BACK)
    flow = config.flow(there.flow)
    back = enabled_opposite_of(config, flow)
    if back is None:
        raise ConfigurationError(
            f"the file has no enabled flow {flow.flow.opposite}.", action="Enable it in the file, then repeat."
        )
    return replace(
        there,
        name=new_name or f"{name}-back",
        flow=str(back.flow),
        topics=exactly(sorted({cut.target_topic for cut in ledger.handovers.cuts(name)})),
    )
