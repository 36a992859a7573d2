"""What the core knows of changes to records: for each topic a chain, which the feature `transforms` makes from a file.

The values are sent to Spark's executors, so nothing here imports more than the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TopicChain:
    """What is done to the records of one topic: here nothing. Records with equal chains are one Spark job."""

    def __bool__(self) -> bool:
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its members, in their order."""
        return ()

    @property
    def is_deterministic(self) -> bool:
        """True if the same record always gives the same result."""
        return True

    @property
    def may_route(self) -> bool:
        """True if some records may go to a target partition other than their source partition's own."""
        return False

    @property
    def sets_partition(self) -> bool:
        """True if records of one source partition may go to several partitions of a topic."""
        return False

    @property
    def comparable(self) -> bool:
        """True if the output of an interrupted run can always be identified by making the rows again."""
        return self.is_deterministic and not self.may_route

    def why(self, topic: str) -> Iterable[str]:  # noqa: ARG002 - of the chains that have members
        """Return why each of its members applies to a topic."""
        return ()


@dataclass(frozen=True, slots=True)
class FlowChains:
    """The chains of a flow: here none has any members."""

    def __bool__(self) -> bool:
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those members that may apply to some topics only."""
        return ()

    def chain_of(self, topic: str, *, heartbeats: bool = False) -> TopicChain:  # noqa: ARG002 - as above
        """Return the chain of a source topic; an empty chain means a raw copy.

        Args:
            heartbeats: True if it holds heartbeats, which monitoring reads: only transforms that name topics apply.
        """
        return NO_CHAIN

    def summary(self) -> list[dict[str, Any]]:
        """Return which transforms exist, as plain data; their texts may contain values of a config provider."""
        return []

    def described(self) -> tuple[tuple[str, str, str, str], ...]:
        """Return name, topics, kind and determinism of each transform, in the order they are applied."""
        return ()


NO_CHAIN = TopicChain()
UNCHANGED = FlowChains()
