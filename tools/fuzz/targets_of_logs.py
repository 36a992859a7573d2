"""Record batches: copied, compared, cut in two, decompressed, and read record by record."""

from __future__ import annotations

import contextlib
import gzip
import struct
import sys
import zlib
from functools import cache
from random import Random

import cramjam

from mirror_lib.errors import MirrorError, OversizedBatchError, Where
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock, read_blocks
from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records.aborted import is_abort_marker
from mirror_lib.records.assemble import BatchAssembler, BatchSizes
from mirror_lib.records.compression.codecs import CodecError, compress, decompress
from mirror_lib.records.header import CODEC_BITS, HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT, parse_header
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import RecordError, read_records, reframe
from mirror_lib.records.rules import ANY_RECORD, RecordRules, lacks_key
from mirror_lib.records.spans import read_spans
from mirror_lib.records.split import halves, readable, skipped_batch
from tests.support.records.record_batches import (
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    SourceRecord,
    batch,
    marker,
    message_set,
    sealed,
)
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import EXTREMES, mutated

_FIRST = 100
#: Exceptions that no input may cause inside of a parser, even if it turns every exception into its own error.
_BUGS = ("MemoryError", "RecursionError", "AssertionError", "TypeError", "AttributeError", "KeyError", "NameError")


@cache
def seeds() -> tuple[bytes, ...]:
    """Return batches of every codec and kind, single and in sequences."""
    records = [
        SourceRecord(
            _FIRST + number, 1_700_000_000_000 + number, b"key" * (number % 3), b"v" * (7 * number), (("h", b"1"),)
        )
        for number in range(12)
    ]
    holes = [record for record in records if record.offset % 3]
    found = [batch(records, codec=codec) for codec in range(5)]
    found += [batch(holes, codec=codec, base_offset=_FIRST, last_offset=_FIRST + 11) for codec in range(5)]
    found.append(batch(records, attributes=LOG_APPEND_TIME, max_timestamp=1_700_000_009_999))
    found.append(batch(records, attributes=TRANSACTIONAL, producer_id=9))
    found.append(batch(records, attributes=TRANSACTIONAL, producer_id=9) + marker(_FIRST + 12, 9, abort=True))
    found += [b"".join(batch([record], codec=codec) for record in records) for codec in (0, 3, 4)]
    found.append(batch([SourceRecord(_FIRST, value=b"x" * 40_000)], codec=3))
    old = [SourceRecord(record.offset, record.timestamp, record.key, record.value) for record in records]
    found += [message_set(old, magic=magic, codec=codec) for magic in (0, 1) for codec in (0, 1, 2)]
    found.append(message_set(old, magic=1, codec=3))
    return tuple(found)


class _Batches(Target):
    def make(self, random: Random) -> bytes:
        data = random.choice(seeds())
        way = random.random()
        if way < 0.35:
            return mutated(data, random, seeds())
        if way < 0.75:
            # A valid checksum lets the damage reach further code.
            return resealed(mutated(data, random, seeds()))
        return resealed(_other_body(data, random))


def _other_body(data: bytes, random: Random) -> bytes:
    """Return a batch whose body is damaged before it is compressed, or with a wrong header."""
    if data[MAGIC_AT] != MAGIC:
        return mutated(data, random)
    header = parse_header(data)
    codec = header.attributes & CODEC_BITS
    body = decompress(codec, data[HEADER_SIZE : LOG_OVERHEAD + header.length])
    other = random.choice((codec, random.randrange(8)))
    changed = mutated(body, random) if random.random() < 0.8 else body
    raw = bytearray(data[:HEADER_SIZE] + (compress(other, changed) if other <= 4 else changed))
    struct.pack_into(">h", raw, 21, header.attributes & ~CODEC_BITS | other)
    if random.random() < 0.4:
        struct.pack_into(">i", raw, 57, _int32(random))
    if random.random() < 0.2:
        struct.pack_into(">i", raw, 23, _int32(random))
    struct.pack_into(">i", raw, 8, len(raw) - LOG_OVERHEAD)
    return bytes(raw) + data[LOG_OVERHEAD + header.length :]


def _int32(random: Random) -> int:
    number = random.choice((*EXTREMES, random.randrange(100), random.getrandbits(31))) & 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def resealed(data: bytes) -> bytes:
    """Return the data with correct checksums of each batch or old message, as far as lengths allow."""
    out, position = bytearray(data), 0
    while len(out) - position > HEADER_SIZE:
        end = position + LOG_OVERHEAD + int.from_bytes(out[position + 8 : position + 12], "big", signed=True)
        if not position + 26 <= end <= len(out):
            break
        if out[position + MAGIC_AT] >= MAGIC:
            if end < position + HEADER_SIZE:
                break
            out[position:end] = sealed(out[position:end])
        else:
            struct.pack_into(">I", out, position + 12, zlib.crc32(out[position + 16 : end]))
        position = end
    return bytes(out)


class CopiedBatches(_Batches):
    """Fetched data of the source, on its way to the target."""

    name = "batches-copied"
    what = "fetched batches become batches for the target"

    def run(self, data: bytes) -> str:
        """Check that nothing is raised; batches that are sent must be whole."""
        choice = Random(zlib.crc32(data))
        rules = choice.choice((ANY_RECORD, RecordRules(needs_key=True), RecordRules(timestamp_before_max_ms=10**9)))
        assembler = BatchAssembler(
            where=Where(topic="t", partition=0),
            offsets=range(
                choice.choice((0, _FIRST, _FIRST + 3)), choice.choice((_FIRST + 5, _FIRST + 12, sys.maxsize))
            ),
            sizes=BatchSizes(
                choice.choice((1, 300, 1 << 20)), choice.choice((200, 1 << 20)), choice.choice((150, 1 << 20))
            ),
            read_committed=choice.random() < 0.5,
            rules=rules,
            skip=choice.random() < 0.5,
            now_ms=lambda: 1_700_000_000_000,
        )
        before = assembler.next_offset
        ready = assembler.feed(data, [(9, _FIRST)])
        skipped = assembler.take_skipped()
        last = assembler.flush()
        ready += [last] if last is not None else []
        if assembler.next_offset < before:
            raise Wrong(f"the place to go on went back from {before} to {assembler.next_offset}")
        for each in ready:
            header = parse_header(each.payload)
            if header.count != each.count or LOG_OVERHEAD + header.length != len(each.payload):
                raise Wrong("a batch for the target is not what its header says")
            if sum(count for _, count in each.source_runs) != each.count:
                raise Wrong("a batch for the target does not know where its records come from")
            _split(each)
        failure = assembler.failure
        if failure is not None and any(bug in failure.what for bug in _BUGS):
            raise Wrong(str(failure))
        return f"{min(len(ready), 3)} ready, {min(len(skipped), 3)} skipped, {failure.reason if failure else 'fine'}"


def _split(ready: ReadyBatch) -> None:
    """Split it, as after a rejection by the target."""
    sound = readable(ready)
    if ready.count > 1:
        parts = halves(ready)
        if sound != (parts is not None) or (parts and parts[0].count + parts[1].count != ready.count):
            raise Wrong("the halves of a batch are not the batch")
    skipped_batch(ready, MirrorError("refused"))


class ComparedBatches(_Batches):
    """Fetched data of either side, for comparison with the other."""

    name = "batches-compared"
    what = "fetched batches are read for verification"
    errors = (RecordError, CodecError, OversizedBatchError)

    def run(self, data: bytes) -> str:
        """Check that both readers return the same records."""
        committed = bool(data[:1] < b"\x80")
        try:
            plain, _ = read_spans(memoryview(data), (), read_committed=committed)
        except self.errors:
            plain = None
        blocks, _ = read_blocks(memoryview(data), (), read_committed=committed)
        if plain is None:
            raise Wrong("one reader reads what the other does not")
        total = 0
        for found in blocks:
            total += len(found) if isinstance(found, RecordBlock) else len(found.records())
        other = sum(len(span.records()) for span in plain)
        if total != other:
            raise Wrong(f"{total} records in blocks, {other} in spans")
        return f"{min(total, 20)} records in {min(len(blocks), 5)} pieces"


class Bodies(Target):
    """Compressed bodies, including bombs: a few bytes that decompress to gigabytes."""

    name = "bodies"
    what = "compressed bodies, decompression bombs among them"
    errors = (CodecError, OversizedBatchError)

    def make(self, random: Random) -> bytes:
        """Return one byte for the codec, then the body."""
        codec = random.choice((1, 2, 3, 4, 4, 3, random.randrange(8)))
        way = random.random()
        if way < 0.01:
            return bytes((codec,)) + random.choice(bombs())
        content = random.choice((b"", b"abc" * 100, bytes(5000), random.randbytes(300)))
        valid = compress(codec if codec <= 4 else 1, content)
        if way < 0.15:
            return bytes((codec,)) + valid * random.choice((1, 2, 3))
        return bytes((codec,)) + mutated(valid, random, [compress(each, content) for each in range(1, 5)])

    def run(self, data: bytes) -> str:
        """Check that no body exceeds the limit."""
        body = decompress(data[0] if data else 0, memoryview(data)[1:])
        if len(body) > BATCH_BODY_BYTES:
            raise Wrong(f"a body of {len(body)} bytes")
        return f"codec {data[0] if data else 0}, {'empty' if not body else 'some bytes'}"


@cache
def bombs() -> tuple[bytes, ...]:
    """Return small bodies of each codec that decompress, or claim to, far beyond the size of any request."""
    huge = 1 << 32
    zeros = bytes(16 << 20)
    deflater = zlib.compressobj(9, wbits=31)
    gzipped = b"".join(deflater.compress(zeros) for _ in range(20)) + deflater.flush()
    zstd = bytes(cramjam.zstd.compress(zeros))
    # Blocks of 128 kB that are one repeated byte take four bytes each, so that a megabyte becomes 32 GB.
    run_length = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"\0"
    rle = b"\x28\xb5\x2f\xfd\x00\x58" + run_length * 250_000
    claimed = b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", huge << 8) + run_length
    compressor = cramjam.lz4.Compressor(block_linked=False)
    for _ in range(20):
        compressor.compress(zeros)
    lz4 = bytes(compressor.finish())
    block = bytes(cramjam.snappy.compress_raw(zeros))
    xerial = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 20
    return (
        gzipped,
        gzip.compress(b"") * 5000,
        zstd * 300,
        rle,
        claimed,
        lz4,
        xerial,
        b"\xff\xff\xff\xff\x0f" + b"\0" * 40,
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, -4) * 10,
    )


class Records(Target):
    """Bodies of records, with wrong counts."""

    name = "records"
    what = "decompressed bodies, record by record"
    errors = (RecordError,)

    def make(self, random: Random) -> bytes:
        """Return four bytes for the count, then the body."""
        data = seeds()[0]
        body = data[HEADER_SIZE:] if random.random() < 0.1 else mutated(data[HEADER_SIZE:], random)
        count = random.choice((12, 12, 12, 11, 13, 0, -1, 1 << 20, 2**31 - 1))
        return struct.pack(">i", count) + body

    def run(self, data: bytes) -> str:
        """Check that the two ways to read records agree."""
        count, body = int.from_bytes(data[:4], "big", signed=True), data[4:]
        with contextlib.suppress(IndexError, ValueError):
            lacks_key(body, min(count, 1000))
        with contextlib.suppress(RecordError):
            is_abort_marker(body)
        parts: list[bytes | memoryview] = []
        try:
            reframe(body, parts, count=count, offset_delta=0, timestamp_shift=5)
            quick = True
        except RecordError:
            quick = False
            if parts:
                raise Wrong("pieces of a damaged body are left") from None
        found = list(read_records(body, base_offset=0, base_timestamp=0, count=count))
        return f"{min(len(found), 15)} records, {'also' if quick else 'not'} the quick way"


TARGETS = (CopiedBatches(), ComparedBatches(), Bodies(), Records())
