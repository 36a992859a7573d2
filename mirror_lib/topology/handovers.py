"""Which topics a flow copies no more, or copies only now, because a cutover has moved their writers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Handovers:
    """What cutovers have moved, as far as it concerns one flow; all names are those of topics on the flow's source."""

    #: Their writers have moved to the flow's target: copying them once more could only bring confusion.
    away: frozenset[str] = frozenset()
    #: Their writers have moved to the flow's source, from its target: the flow back may copy them.
    here: frozenset[str] = frozenset()
    #: False where the rules of a flow are asked for as its file has them, whatever has moved.
    restrict: bool = True


NO_HANDOVERS = Handovers()
UNRESTRICTED = Handovers(restrict=False)
