"""Avro's logical types as Python values and back, without loss.

fastavro's own ones round decimals to the declared precision, read naive times in the machine's time zone, and fail on
dates that Python does not have. Here, a value that Python's type cannot hold or would change stays the number or text
that it is written as. The types have their own names in fastavro's tables, so that other users of fastavro in this
process are not affected.

Names and meanings: Avro 1.12, "Logical Types"; a logical type with wrong attributes is ignored there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro.read
import fastavro.write

AvroType = Mapping[str, Any]

_PREFIX = "mirror-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
#: Python refuses to print longer numbers; no real decimal has as many digits.
_MOST_DIGITS = 4000


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A logical type on one of Avro's types."""

    #: Raises ValueError or OverflowError for values that Python's type cannot hold.
    read: Callable[[Any, AvroType], Any]
    #: Receives only values of `python`.
    write: Callable[[Any, AvroType], Any]
    python: type


def _timestamp(unit: int, *, local: bool) -> LogicalType:
    """Microseconds of a unit; local ones are without a time zone."""
    epoch = _EPOCH.replace(tzinfo=None) if local else _EPOCH

    def read(number: int, _: AvroType) -> datetime:
        return epoch + timedelta(microseconds=number * unit)

    def write(value: datetime, _: AvroType) -> int:
        if (value.tzinfo is None) is not local:
            raise ValueError(f"{value} {'has' if local else 'lacks'} a time zone")
        return _whole((value - epoch) // _MICROSECOND, unit, value)

    return LogicalType(read, write, datetime)


def _time(unit: int) -> LogicalType:
    def read(number: int, _: AvroType) -> time:
        days, of_day = divmod(number * unit, 86_400_000_000)
        if days:
            raise OverflowError("not within one day")
        return (_EPOCH + timedelta(microseconds=of_day)).time()

    def write(value: time, _: AvroType) -> int:
        if value.tzinfo is not None:
            raise ValueError(f"{value} has a time zone, but the schema's time of day has none")
        of_day = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return _whole(of_day, unit, value)

    return LogicalType(read, write, time)


def _whole(microseconds: int, unit: int, value: object) -> int:
    number, rest = divmod(microseconds, unit)
    if rest:
        raise ValueError(f"{value} is more precise than the schema's unit of {unit} microseconds")
    return number


def _read_decimal(content: bytes, schema: AvroType) -> Decimal:
    if not content:
        raise ValueError("a number without bytes")
    unscaled = int.from_bytes(content, "big", signed=True)
    if abs(unscaled) >= 10**_MOST_DIGITS:
        raise OverflowError("a number with too many digits")
    # Not by arithmetic, which rounds.
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -schema.get("scale", 0)))


def _unscale(value: Decimal, schema: AvroType) -> int:
    sign, digits, exponent = value.as_tuple()
    if not value.is_finite() or not isinstance(exponent, int):
        raise ValueError(f"{value} is not a number")
    scale, precision = schema.get("scale", 0), schema["precision"]
    shift, number = exponent + scale, int("".join(map(str, digits)) or "0")
    if number == 0:
        return 0
    # Before a power of ten is computed, which may be very large.
    if len(digits) + shift > precision and len(str(number)) + shift > precision:
        raise ValueError(f"{value} has more digits than the schema's precision")
    dropped = 10 ** min(max(-shift, 0), len(digits))
    if number % dropped:
        raise ValueError(f"{value} has more decimal places than the schema's scale")
    unscaled: int = number // dropped * 10 ** max(shift, 0)
    return -unscaled if sign else unscaled


def _write_decimal(value: Decimal, schema: AvroType) -> bytes:
    unscaled = _unscale(value, schema)
    if schema["type"] == "fixed":
        return unscaled.to_bytes(schema["size"], "big", signed=True)
    # As few bytes as possible, as Java's `BigInteger.toByteArray`.
    bits = (unscaled if unscaled >= 0 else -unscaled - 1).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def _read_uuid(text: str, _: AvroType) -> UUID:
    value = UUID(text)
    if str(value) != text:
        raise ValueError("a UUID in another form")
    return value


def _read_date(days: int, _: AvroType) -> date:
    return date.fromordinal(days + _EPOCH_DAY)


def _write_date(value: date, _: AvroType) -> int:
    has_time = isinstance(value, datetime)
    if has_time:
        raise ValueError(f"{value} has a time of day, but the schema's date has none")
    return value.toordinal() - _EPOCH_DAY


_DECIMAL = LogicalType(_read_decimal, _write_decimal, Decimal)
#: By Avro's type and the logical type's name.
_KNOWN = {
    ("long", "timestamp-millis"): _timestamp(1000, local=False),
    ("long", "timestamp-micros"): _timestamp(1, local=False),
    ("long", "local-timestamp-millis"): _timestamp(1000, local=True),
    ("long", "local-timestamp-micros"): _timestamp(1, local=True),
    ("int", "date"): LogicalType(_read_date, _write_date, date),
    ("int", "time-millis"): _time(1000),
    ("long", "time-micros"): _time(1),
    ("bytes", "decimal"): _DECIMAL,
    ("fixed", "decimal"): _DECIMAL,
    ("string", "uuid"): LogicalType(_read_uuid, lambda value, _: str(value), UUID),
    ("fixed", "uuid"): LogicalType(lambda content, _: UUID(bytes=bytes(content)), lambda value, _: value.bytes, UUID),
}


def own_name(schema: AvroType) -> str | None:
    """The name of a type's logical type in fastavro's tables; None if it has none, or an invalid one.

    Args:
        schema: as in the schema's text.
    """
    kind, name = schema["type"], schema.get("logicalType")
    if not isinstance(kind, str) or not isinstance(name, str) or (kind, name) not in _KNOWN:
        return None
    if name == "decimal" and not _is_decimal(schema):
        return None
    if (kind, name) == ("fixed", "uuid") and schema.get("size") != 16:
        return None
    return _PREFIX + name


def _is_decimal(schema: AvroType) -> bool:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    return isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and precision > 0


def of(schema: object) -> LogicalType | None:
    """The logical type of a type with a name by `own_name`."""
    if not isinstance(schema, Mapping):
        return None
    name = schema.get("logicalType")
    if not isinstance(name, str) or not name.startswith(_PREFIX):
        return None
    return _KNOWN.get((schema["type"], name.removeprefix(_PREFIX)))


def to_python(logical: LogicalType, written: Any, schema: AvroType) -> Any:
    """A written number, text or bytes as Python's value; unchanged if there is none."""
    try:
        return logical.read(written, schema)
    except (ValueError, OverflowError):
        return written


def to_written(logical: LogicalType, value: Any, schema: AvroType) -> Any:
    """The inverse of `to_python`.

    Raises:
        ValueError: the schema cannot hold the value without loss.
        OverflowError: likewise.
    """
    return logical.write(value, schema) if isinstance(value, logical.python) else value


def _register() -> None:
    """Register the names with fastavro, for reading and writing."""
    for (kind, name), logical in _KNOWN.items():
        # fastavro passes the reader's schema too, which is never set here.
        def read(written: Any, schema: Any, *_: Any, logical: LogicalType = logical) -> Any:
            return to_python(logical, written, schema)

        def write(value: Any, schema: Any, *, logical: LogicalType = logical) -> Any:
            return to_written(logical, value, schema)

        fastavro.read.LOGICAL_READERS[f"{kind}-{_PREFIX}{name}"] = read
        fastavro.write.LOGICAL_WRITERS[f"{kind}-{_PREFIX}{name}"] = write


_register()
