"""Topics that a flow no longer copies, or only now copies, because a cutover has moved their writers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Handovers:
    """Topics that cutovers have moved and that concern one flow, by their names on the flow's source."""

    #: Their writers have moved to the flow's target: the flow must not copy them any more.
    away: frozenset[str] = frozenset()
    #: Their writers have moved from the flow's target to its source: the failback flow may copy them.
    here: frozenset[str] = frozenset()
    #: False if the rules of the configuration file are needed, regardless of hand-overs.
    restrict: bool = True


NO_HANDOVERS = Handovers()
UNRESTRICTED = Handovers(restrict=False)
