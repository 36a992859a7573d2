"""Fetching alone and producing alone over one connection, and the preparation of both."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mirror_lib.cluster.protocol.fetch import (
    FETCH,
    PLAIN_VERSION,
    FetchRequestPartition,
    encode_fetch,
    parse_fetch,
)
from mirror_lib.cluster.protocol.produce import PRODUCE, PRODUCE_VERSION, encode_produce, parse_produce
from mirror_lib.records.header import HEADER_SIZE, LOG_OVERHEAD, parse_header
from mirror_lib.records.ready import ReadyBatch
from tools.bench.clusters.wire import Frame, Wire, frame
from tools.bench.errors import BenchError
from tools.bench.limit.model import FetchWay

_FETCH_WAIT_MS = 500
_PRODUCE_TIMEOUT_MS = 30_000
#: Approximate maximum size of a request, like the copy's.
_REQUEST_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Layout:
    """The positions of a partition's batches: known beforehand, so that reading need not parse any.

    `positions` counts bytes from the first batch on, `offsets` are those of the batches' first records; the last
    element of both is the end of the log.
    """

    positions: array[int] = field(default_factory=lambda: array("q", (0,)))
    offsets: array[int] = field(default_factory=lambda: array("q", (0,)))

    @property
    def batches(self) -> int:
        """The number of batches."""
        return len(self.positions) - 1

    def add(self, records: memoryview | bytes) -> int:
        """Add the whole batches of one response from the last known offset on; return their bytes."""
        position = 0
        while position + HEADER_SIZE <= len(records):
            header = parse_header(records, position)
            size = LOG_OVERHEAD + header.length
            if position + size > len(records):
                break
            position += size
            self.positions.append(self.positions[-1] + size)
            self.offsets.append(header.base_offset + header.last_offset_delta + 1)
        return position

    def after(self, batch: int, received: int) -> int:
        """Return the first batch that is not whole in `received` bytes that begin with `batch`."""
        return bisect_right(self.positions, self.positions[batch] + received) - 1


def read_partition(
    wire: Wire, topic: str, partition: int, end: int, *, way: FetchWay, take: Callable[[bytes], None]
) -> Layout:
    """Read a partition from offset 0 to `end`, and pass the batches on.

    Raises:
        BenchError: it ends before.
    """
    layout = Layout()
    while layout.offsets[-1] < end:
        wanted = FetchRequestPartition(topic, partition, layout.offsets[-1], way.max_bytes)
        wire.send(_fetch_frame([wanted], way.max_bytes))
        (answer,) = parse_fetch(wire.receive(), PLAIN_VERSION)
        whole = layout.add(answer.records)
        if answer.error_code or not whole:
            raise BenchError(f"{topic}-{partition} cannot be read at offset {layout.offsets[-1]} of {end}.")
        # A copy: the next response is read into the same memory.
        take(bytes(answer.records[:whole]))
    return layout


def _fetch_frame(wanted: Sequence[FetchRequestPartition], max_bytes: int) -> list[memoryview]:
    body = encode_fetch(wanted, max_bytes=max_bytes, max_wait_ms=_FETCH_WAIT_MS, min_bytes=1, read_committed=False)
    return frame(FETCH, PLAIN_VERSION, body)


class Fetching:
    """Reads all batches of some partitions over one connection and discards them."""

    def __init__(self, wire: Wire, topic: str, layouts: dict[int, Layout], way: FetchWay) -> None:
        self._wire = wire
        self._topic = topic
        self._layouts = layouts
        self._way = way
        #: Number of batches read, by partition.
        self.read = dict.fromkeys(layouts, 0)

    def run(self) -> None:
        """Read everything.

        Raises:
            BenchError: a partition could not be read.
        """
        wanted = deque([*share] for share in split(list(self._layouts), self._way.outstanding))
        for partitions in wanted:
            self._ask(partitions)
        while wanted:
            # Responses come in the order of the requests.
            partitions = wanted.popleft()
            if left := self._take(partitions):
                self._ask(left)
                wanted.append(left)

    def _ask(self, partitions: Sequence[int]) -> None:
        asked = [
            FetchRequestPartition(
                self._topic, each, self._layouts[each].offsets[self.read[each]], self._way.partition_bytes
            )
            for each in partitions
        ]
        self._wire.send(_fetch_frame(asked, self._way.max_bytes))

    def _take(self, partitions: Sequence[int]) -> list[int]:
        """Process a response; return the partitions of the next request, those without data first."""
        served: list[int] = []
        for answer in parse_fetch(self._wire.receive(), PLAIN_VERSION):
            if answer.error_code:
                raise BenchError(f"{answer.topic}-{answer.partition} cannot be read: error code {answer.error_code}.")
            before = self.read[answer.partition]
            self.read[answer.partition] = self._layouts[answer.partition].after(before, len(answer.records))
            if self.read[answer.partition] > before:
                served.append(answer.partition)
        if not served:
            raise BenchError(f"{self._topic} gives no whole batch within {self._way.max_bytes} bytes.")
        return [
            each
            for each in (*(each for each in partitions if each not in served), *served)
            if self.read[each] < self._layouts[each].batches
        ]


def split(partitions: Sequence[int], parts: int) -> list[list[int]]:
    """Distribute partitions evenly; never more parts than partitions, none of them empty."""
    return [list(partitions[number::parts]) for number in range(min(parts, len(partitions)))]


@dataclass(frozen=True, slots=True)
class Request:
    """An encoded produce request, and the expected offsets of its batches."""

    frame: Frame
    expected: dict[int, int]


def requests(topic: str, batches: dict[int, list[ReadyBatch]]) -> Iterator[Request]:
    """Encode batches, at most one of a partition to a request, in the order of each partition."""
    next_offsets = dict.fromkeys(batches, 0)
    for turn in range(max((len(each) for each in batches.values()), default=0)):
        ready = [(partition, each[turn]) for partition, each in batches.items() if turn < len(each)]
        while ready:
            chosen: list[tuple[int, ReadyBatch]] = []
            size = 0
            while ready and (not chosen or size < _REQUEST_BYTES):
                partition, batch = ready.pop(0)
                chosen.append((partition, batch))
                size += len(batch.payload)
            payloads = [(topic, partition, batch.payload) for partition, batch in chosen]
            body = encode_produce(payloads, timeout_ms=_PRODUCE_TIMEOUT_MS)
            expected = {partition: next_offsets[partition] for partition, _ in chosen}
            for partition, batch in chosen:
                next_offsets[partition] += batch.count
            yield Request(frame(PRODUCE, PRODUCE_VERSION, body), expected)


class Producing:
    """Appends ready-made batches over one connection until all of them are acknowledged."""

    def __init__(self, wire: Wire, prepared: Sequence[Request], in_flight: int) -> None:
        self._wire = wire
        self._prepared = prepared
        self._in_flight = in_flight
        #: Number of batches that the leader has appended.
        self.acknowledged = 0

    def run(self) -> None:
        """Send everything.

        Raises:
            BenchError: a batch was rejected, or did not get its offset.
        """
        sent: deque[Request] = deque()
        for request in self._prepared:
            if len(sent) >= self._in_flight:
                self._take_answer(sent.popleft())
            self._wire.send(request.frame)
            sent.append(request)
        while sent:
            self._take_answer(sent.popleft())

    def _take_answer(self, request: Request) -> None:
        for answer in parse_produce(self._wire.receive()):
            if answer.error_code:
                raise BenchError(
                    f"{answer.topic}-{answer.partition} refused a batch with error code {answer.error_code}."
                )
            if answer.base_offset != request.expected[answer.partition]:
                raise BenchError(f"{answer.topic}-{answer.partition} was written to by another producer.")
            self.acknowledged += 1
