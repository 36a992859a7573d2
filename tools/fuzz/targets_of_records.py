"""Records of internal topics, which other programs write too, and stored parts of the offset map."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from functools import cache
from random import Random

from mirror_lib.cluster.topics.mm2_formats import Checkpoint, Heartbeat, OffsetSync, RecordFormatError
from mirror_lib.cluster.topics.position_format import (
    OmittedRange,
    Position,
    PositionKeys,
    PositionState,
    decode_value,
    encode_value,
)
from mirror_lib.errors import OffsetMapError
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.offsets.runs import OffsetRun, decode, encode
from mirror_lib.topology.names import TopicPartition
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import mutated

_KEY_SIZE = struct.Struct(">H")
_FORMATS = (OffsetSync, Checkpoint, Heartbeat)
_VALID = (
    OffsetSync("orders", 3, 1000, 998),
    Checkpoint("billing", "berlin.orders", 3, 1000, 998, "note"),
    Heartbeat("berlin", "cloud", 1_700_000_000_000),
)


class Mm2Records(Target):
    """Keys and values of offset syncs, checkpoints and heartbeats."""

    name = "mm2-records"
    what = "MM2's offset syncs, checkpoints and heartbeats"
    errors = (RecordFormatError,)

    def make(self, random: Random) -> bytes:
        """Return one byte for the format, two for the size of the key, then key and value."""
        which = random.randrange(len(_VALID))
        others = [each.key() for each in _VALID] + [each.value() for each in _VALID]
        key, value = (
            mutated(valid, random, others) if random.random() < 0.7 else valid
            for valid in (_VALID[which].key(), _VALID[which].value())
        )
        key = key[:0xFFFF]
        return bytes((which,)) + _KEY_SIZE.pack(len(key)) + key + value

    def run(self, data: bytes) -> str:
        """Parse, serialize and compare, if it is text again."""
        kind = _FORMATS[(data[0] if data else 0) % len(_FORMATS)]
        size = int.from_bytes(data[1:3], "big")
        found = kind.decode(data[3 : 3 + size] if size else None, data[3 + size :] or None)
        again = kind.decode(found.key(), found.value())
        if again != found:
            raise Wrong(f"{found} was written and read as {again}")
        return f"{kind.__name__}: read"


@cache
def _bomb() -> str:
    """Return a few kilobytes that decompress to 64 MiB of offset map."""
    return base64.b64encode(b"\x01" + zlib.compress(bytes(64 << 20))).decode()


class Positions(Target):
    """Keys and values of the topic with the positions of partitions."""

    name = "positions"
    what = "position records (Kafka Connect's source offsets)"
    errors = (RecordFormatError,)
    _keys = PositionKeys("berlin")
    _source = TopicPartition("orders", 3)

    def make(self, random: Random) -> bytes:
        """Return damaged bytes, or JSON with other values."""
        values = [encode_value(each) for each in self._positions()]
        valid = random.choice(values)
        if random.random() < 0.5:
            return mutated(valid, random, [*values, self._keys.encode(self._source)])
        fields = json.loads(valid)
        name = random.choice([*fields, "offset", "runs", "left_out", "claim"])
        fields[name] = random.choice(
            (None, True, -1, 0, 2**63, 10**400, 1.5, "", "x" * 5000, [], [[]], {}, [[1, 2, 3, "a", 1]], _bomb())
        )
        return json.dumps(fields).encode()

    def run(self, data: bytes) -> str:
        """Parse it as a key and as a value, serialize and compare."""
        if self._keys.decode(data) is not None:
            return "a key"
        found = decode_value(self._source, data)
        if found is None:
            return "nothing"
        if decode_value(self._source, encode_value(found)) != found:
            raise Wrong("a position was not read as it was written")
        return f"a position, {found.state or 'of MM2'}"

    def _positions(self) -> list[Position]:
        topic, partition = self._source
        return [
            Position(topic, partition, 41),
            Position(topic, partition, 41, 40, PositionState.CLOSED, 9, 1, "run", "id", 3, 5),
            Position(
                *(topic, partition, 41, 40, PositionState.OPEN, 9, 1, "run", "id", 3, 5),
                skipped=(OmittedRange(3, 5, 2, "poison"),),
                runs=(OffsetRun(0, 0, 3), OffsetRun(5, 3, 7)),
                backfill="b",
            ),
        ]


class OffsetMaps(Target):
    """Segments of the offset map as stored in the ledger and in positions."""

    name = "offset-maps"
    what = "stored pieces of the exact offset map"
    errors = (OffsetMapError,)
    _runs = (OffsetRun(0, 0, 3), OffsetRun(5, 3, 7), OffsetRun(100, 10, 1), OffsetRun(2**40, 11, 2**30))

    def make(self, random: Random) -> bytes:
        """Return data damaged outside, or inside of the compression."""
        valid = encode(self._runs[: random.randrange(5)])
        if random.random() < 0.4:
            return mutated(valid, random)
        body = mutated(zlib.decompress(valid[1:]), random)
        return b"\x01" + zlib.compress(body)

    def run(self, data: bytes) -> str:
        """Check that both readers return the same."""
        try:
            columns: RunColumns | None = RunColumns.decode(data)
        except OffsetMapError:
            columns = None
        runs = decode(data)
        if columns is None:
            return "runs that no 64 bits hold" if runs and runs[-1].source_next >= 2**63 else "runs for one reader only"
        if len(columns) != len(runs):
            raise Wrong(f"{len(columns)} runs for one reader, {len(runs)} for the other")
        return f"{min(len(runs), 5)} runs"


TARGETS = (Mm2Records(), Positions(), OffsetMaps())
