"""Which part of the configuration a key of the file belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_lib.config.definitions import MM2_BY_NAME
from mirror_lib.config.own_keys import OWN_BY_NAME
from mirror_lib.topology.names import FlowId
from mirror_lib.transform.setting_keys import is_transform_key

ARROW = "->"


class Level(Enum):
    """Where a key stands."""

    TOP = "the top level"
    CLUSTER = "a cluster"
    FLOW = "a flow"
    #: It looks like a key of a flow that the file does not have.
    NO_FLOW = "no flow"


@dataclass(frozen=True, slots=True)
class Place:
    """A key taken apart: `name` is the key without the alias or flow that it stands under."""

    level: Level
    name: str
    cluster: str | None = None
    flow: FlowId | None = None

    @property
    def prefix(self) -> str:
        """What stands before the name."""
        if self.flow is not None:
            return f"{self.flow}."
        return "" if self.cluster is None else f"{self.cluster}."


def place_of(key: str, clusters: Sequence[str]) -> Place:
    """Take a key apart. Aliases may hold dots: the longest that fits counts."""
    if ARROW in key:
        return _flow_place(key, clusters)
    if is_transform_key(key) or key in MM2_BY_NAME or key in OWN_BY_NAME:
        return Place(Level.TOP, key)
    for alias in sorted(clusters, key=len, reverse=True):
        if key.startswith(f"{alias}."):
            return Place(Level.CLUSTER, key.removeprefix(f"{alias}."), cluster=alias)
    return Place(Level.TOP, key)


def _flow_place(key: str, clusters: Sequence[str]) -> Place:
    sources = [alias for alias in clusters if key.startswith(f"{alias}{ARROW}")]
    pairs = [
        FlowId(source, target)
        for source in sources
        for target in clusters
        if source != target and key.startswith(f"{target}.", len(source) + len(ARROW))
    ]
    if not pairs:
        return Place(Level.NO_FLOW, key)
    pair = max(pairs, key=lambda pair: len(str(pair)))
    return Place(Level.FLOW, key.removeprefix(f"{pair}."), flow=pair)
