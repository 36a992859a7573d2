"""The part of the configuration that a key of the file belongs to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_lib.config.settings.keys_of_transforms import is_transform_key
from mirror_lib.config.settings.mirror_keys import OWN_BY_NAME
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME
from mirror_lib.former_names import SETTINGS as FORMER_SETTINGS
from mirror_lib.topology.names import FlowId

ARROW = "->"


class Level(Enum):
    """The level of a key."""

    TOP = "the top level"
    CLUSTER = "a cluster"
    FLOW = "a flow"
    #: It looks like a key of a flow that the file does not have.
    NO_FLOW = "not a flow"


@dataclass(frozen=True, slots=True)
class Place:
    """A parsed key: `name` is the key without the alias or flow before it."""

    level: Level
    name: str
    cluster: str | None = None
    flow: FlowId | None = None

    @property
    def prefix(self) -> str:
        """The part before the name."""
        if self.flow is not None:
            return f"{self.flow}."
        return "" if self.cluster is None else f"{self.cluster}."


def place_of(key: str, clusters: Collection[str]) -> Place:
    """Parse a key. Aliases may contain dots: the longest match applies.

    Args:
        key: of the file.
        clusters: the aliases; a set if there are many keys.
    """
    if ARROW in key:
        pair = max(pairs_in(key, clusters), key=lambda pair: len(str(pair)), default=None)
        if pair is None:
            return Place(Level.NO_FLOW, key)
        return Place(Level.FLOW, key.removeprefix(f"{pair}."), flow=pair)
    if is_transform_key(key) or key in MM2_BY_NAME or key in OWN_BY_NAME or key in FORMER_SETTINGS:
        return Place(Level.TOP, key)
    alias = max(_heads(key, ".", clusters), key=len, default=None)
    if alias is not None:
        return Place(Level.CLUSTER, key.removeprefix(f"{alias}."), cluster=alias)
    return Place(Level.TOP, key)


def pairs_in(key: str, clusters: Collection[str]) -> Iterator[FlowId]:
    """Yield the pairs of different clusters whose flow a key may belong to."""
    for source in _heads(key, ARROW, clusters):
        for target in _heads(key[len(source) + len(ARROW) :], ".", clusters):
            if target != source:
                yield FlowId(source, target)


def written_pairs(keys: Iterable[str], clusters: Sequence[str]) -> tuple[FlowId, ...]:
    """Return the pairs of clusters that keys name, in the order of the aliases: with many clusters, keys name few
    pairs.
    """
    order = {alias: place for place, alias in enumerate(clusters)}
    pairs = {pair for key in keys if ARROW in key for pair in pairs_in(key, order)}
    return tuple(sorted(pairs, key=lambda pair: (order[pair.source], order[pair.target])))


def _heads(text: str, end: str, clusters: Collection[str]) -> Iterator[str]:
    """Yield the aliases that a text begins with, before an end."""
    at = text.find(end)
    while at >= 0:
        if text[:at] in clusters:
            yield text[:at]
        at = text.find(end, at + 1)
