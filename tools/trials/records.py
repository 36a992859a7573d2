"""Records of the sources of trials, by their numbers: shapes that are hard to align. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.support.kafka import Header, Record

#: 2024-01-01.
FIRST_TIME_MS = 1_704_067_200_000


@dataclass(frozen=True, slots=True)
class Shape:
    """A way to make a record from its number."""

    #: Number of keys, used in turn; 0: records have none.
    keys: int = 97
    #: Bytes of a value.
    size: int = 100
    headers: bool = True
    #: Milliseconds between two records; 0: all have the same time.
    step_ms: int = 10
    #: Number of records in a row that are equal, with their times.
    run: int = 1
    #: Interval, in records, between different records; those between differ only in their times. 0: none is the same.
    single: int = 0

    def record(self, number: int, partition: int) -> Record:
        """Return the record of this number."""
        number //= self.run
        time = FIRST_TIME_MS + number * self.step_ms
        if self.single and number % self.single != self.single - 1:
            block = number // self.single
            return Record(b"beat", None, (), FIRST_TIME_MS + block * self.step_ms, partition)
        key = b"key-%d" % (number % self.keys) if self.keys else None
        value = (b"value-%d-%d-" % (partition, number)).ljust(self.size, b".")
        headers: tuple[Header, ...] = (("number", b"%d" % number), ("absent", None)) if self.headers else ()
        return Record(value, key, headers, time, partition)

    def records(self, count: int, partition: int = 0, *, start: int = 0) -> list[Record]:
        """Return records in a row."""
        return [self.record(number, partition) for number in range(start, start + count)]


PLAIN = Shape()


def changed(record: Record, part: str) -> Record:
    """Return the record with another key, value, headers or timestamp."""
    if part == "key":
        return replace(record, key=b"other-" + (record.key or b""))
    if part == "value":
        return replace(record, value=b"other-" + (record.value or b""))
    if part == "headers":
        return replace(record, headers=(*record.headers, ("other", b"1")))
    return replace(record, timestamp_ms=(record.timestamp_ms or 0) + 3)


def foreign(number: int, partition: int, time_ms: int) -> Record:
    """Return a record that no source has."""
    return Record(b"foreign-%d" % number, b"foreign", (), time_ms, partition)


def odd(partition: int) -> list[Record]:
    """Records with nulls, empty parts, and headers that repeat."""
    keys = (None, b"", b"k", b"\x00\xff")
    values = (None, b"", b"v", b"\x00" * 40)
    headers: tuple[tuple[Header, ...], ...] = (
        (),
        (("a", None),),
        (("a", b""),),
        (("a", b"1"), ("a", b"1")),
        (("a", b"1"), ("b", b"2"), ("a", None)),
        (("b", b"2"), ("a", b"1")),
    )
    found = [Record(value, key, header) for key in keys for value in values for header in headers]
    return [
        replace(each, timestamp_ms=FIRST_TIME_MS + number // 3, partition=partition)
        # Each comes thrice in a row, and once more later.
        for number, each in enumerate([*(each for each in found for _ in range(3)), *found])
    ]
