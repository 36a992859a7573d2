"""Identifiers of flows and partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic on one cluster; the context determines the cluster."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, order=True)
class FlowId:
    """An ordered pair of cluster aliases, written `source->target` as in MM2's file.

    Work next to the flow, such as a backfill, has a suffix (`A->B#backfill-x`): its lock, its writers and its rows in
    the ledger are thus separate from the flow's.
    """

    source: str
    target: str
    #: Empty for the flow itself.
    work: str = ""

    def __str__(self) -> str:
        flow = f"{self.source}->{self.target}"
        return f"{flow}#{self.work}" if self.work else flow

    @property
    def opposite(self) -> FlowId:
        """The flow from the target to the source; also for work next to a flow."""
        return FlowId(self.target, self.source)

    @classmethod
    def parse(cls, text: str) -> FlowId:
        """Read `A->B`.

        Raises:
            ValueError: the text is not two different aliases around one arrow.
        """
        source, arrow, target = text.partition("->")
        source, target = source.strip(), target.strip()
        if not (arrow and source and target) or source == target or "->" in target:
            raise ValueError(f"{text!r} is not a flow: write it as SOURCE->TARGET with two different cluster aliases")
        return cls(source, target)
