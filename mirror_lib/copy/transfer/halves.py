"""What the two halves of a copy say to the task between them.

    source --fetch--> SourceReader --deliver--> task --write--> TargetWriter --produce--> target
                           ^--------wake-------- task <--acknowledged-- |

Records go one way. What goes back is memory: bytes that the target has acknowledged may be requested again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mirror_lib.copy.transfer.assembler_protocol import Part
from mirror_lib.copy.transfer.partition_progress import PartitionCopy


class Downstream(Protocol):
    """Receives the parts that the reading half makes of fetches."""

    def deliver(self, copy: PartitionCopy, parts: Sequence[Part]) -> None:
        """Take the complete parts of a partition, in the order of their offsets."""

    def settle(self, copy: PartitionCopy) -> None:
        """Look whether a partition has ended."""

    async def room(self) -> None:
        """Wait for memory for another part."""


class Upstream(Protocol):
    """Learns what has become of the batches that the writing half took."""

    def acknowledged(self, copy: PartitionCopy, size: int) -> None:
        """These bytes of a partition are no longer held."""

    def committed(self, copies: Sequence[PartitionCopy]) -> None:
        """The transactions of these partitions are committed."""
