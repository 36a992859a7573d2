"""The path of each topic's records: copied unchanged, or through transforms. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from mirror_lib.config.data_plane import FlowChains, TopicChain

_IN_TRANSACTIONS = "written in transactions, for read_committed consumers"


class Path(StrEnum):
    """How records are copied."""

    #: Batches are sent as they were read.
    RAW_COPY = "raw copy"
    #: Spark reads, changes and writes single records; also unchanged records of merges in transactions.
    TRANSFORM = "transform"


class TopicPath(NamedTuple):
    """The path of one topic's records; printed, it is one line."""

    topic: str
    path: Path
    #: The names of the transforms that apply, in their order.
    transforms: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.names} ({self.reason})"

    @property
    def names(self) -> str:
        """The names of the transforms in one text; the path's name without any."""
        return " -> ".join(self.transforms) or self.path.value

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output and the report file."""
        return {
            "topic": self.topic,
            "path": self.path.value,
            "transforms": list(self.transforms),
            "reason": self.reason,
        }


def _none(topic: str) -> bool:  # noqa: ARG001 - the signature of `topic_paths`'s last argument
    return False


def topic_paths(
    topics: Iterable[str],
    transforms: FlowChains,
    is_heartbeats: Callable[[str], bool] = _none,
    *,
    transactions: bool = False,
    merged: Collection[str] = (),
) -> tuple[TopicPath, ...]:
    """Return the paths of source topics, in their order.

    Args:
        topics: of the source, selected by the flow.
        transforms: of the flow.
        is_heartbeats: True for a topic with heartbeats (`ReplicationPolicy.is_heartbeats_topic`), which monitoring
            reads and which only transforms that name it may change.
        transactions: True if the flow uses transactions where nothing else gives exactly-once.
        merged: those of the topics that share a target topic with others.
    """
    return tuple(
        _topic_path(
            topic, transforms, heartbeats=is_heartbeats(topic), transactions=transactions, merged=topic in merged
        )
        for topic in topics
    )


def _topic_path(topic: str, transforms: FlowChains, *, heartbeats: bool, transactions: bool, merged: bool) -> TopicPath:
    chain = transforms.chain_of(topic, heartbeats=heartbeats)
    if merged and transactions and not chain:
        return TopicPath(topic, Path.TRANSFORM, (), f"it is merged with other topics; {_IN_TRANSACTIONS}")
    if not transforms:
        return TopicPath(topic, Path.RAW_COPY, (), "the flow has no transforms")
    if chain:
        reason = "; ".join((*chain.why(topic), *_how(chain, transactions=transactions, merged=merged)))
        return TopicPath(topic, Path.TRANSFORM, chain.names, reason)
    if heartbeats:
        return TopicPath(topic, Path.RAW_COPY, (), "heartbeats, which no transform selects")
    return TopicPath(topic, Path.RAW_COPY, (), f"no transform selects it: {', '.join(transforms.names)}")


def _how(chain: TopicChain, *, transactions: bool, merged: bool) -> Iterator[str]:
    if transactions and (merged or not chain.comparable):
        yield _IN_TRANSACTIONS
    elif not chain.is_deterministic:
        yield "at least once, because its results may differ between runs"
