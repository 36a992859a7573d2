"""What a reader reports if an offset was deleted, by what it reads the log for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.errors import DirtyStartError, MirrorError, OffsetOutOfRangeError, Where
from mirror_lib.topology.names import TopicPartition

TARGET = TopicPartition("A.orders", 3)
SOURCE = Where(flow="A->B", topic="orders", partition=3)


@dataclass(frozen=True)
class Gone:
    """The response to a fetch from an offset that retention has deleted."""

    error_code: int = ErrorCode.OFFSET_OUT_OF_RANGE


class Client:
    """A client of a cluster whose log begins later."""

    cluster: ClassVar = "B"

    def leader(self, partition: TopicPartition) -> int:
        return 1

    async def fetch(self, *_: Any, **__: Any) -> list[Gone]:
        return [Gone()]


def reported(interrupted: Where | None) -> MirrorError:
    client: Any = Client()
    reader = PartitionReader(client, TARGET, CopySettings(), read_committed=True, interrupted=interrupted)
    with pytest.raises(MirrorError) as caught:
        asyncio.run(reader.read(7))
    return caught.value


def test_an_interrupted_copy_names_the_whole_command_that_sets_the_position() -> None:
    error = reported(SOURCE)

    assert isinstance(error, DirtyStartError)
    assert error.where == SOURCE
    assert "A.orders-3 on cluster B no longer has offset 7" in error.what
    assert "`mirror position set --flow 'A->B' --topic orders --partition 3 --to OFFSET`" in error.action


def test_without_an_interrupted_copy_no_position_is_to_be_set() -> None:
    error = reported(None)

    assert isinstance(error, OffsetOutOfRangeError)
    assert error.where == Where(cluster="B", topic="A.orders", partition=3, offset=7)
    assert "position set" not in error.action
