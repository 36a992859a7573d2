"""Parse and convert numbers, with Java's narrowing."""

from __future__ import annotations

import math
import re
import struct as binary
from decimal import Decimal
from fractions import Fraction

from mirror_lib.features.transforms.smt.values.data import (
    DataError,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    SchemaType,
    Value,
    class_name,
)

#: The digits of a number are never given back: a text of a million digits would be tried in all ways.
_BIG_DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,10})?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"([+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)[fFdD]?")
_FLOAT_NAME = re.compile(r"([+-]?)(NaN|Infinity)")
#: Characters that `String.trim()` removes.
_BLANKS = "".join(map(chr, range(0x21)))
#: Enough for any number of a record; Jackson's limit too.
MAX_DIGITS = 1000

WIDTHS = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_CLASSES: dict[SchemaType, type[int]] = {
    SchemaType.INT8: Int8,
    SchemaType.INT16: Int16,
    SchemaType.INT32: Int32,
    SchemaType.INT64: int,
}


class NotANumberError(ValueError):
    """Java's `NumberFormatException`."""


def integer_of(kind: SchemaType, value: int) -> int:
    """Return a whole number as an object of the class for a Java type."""
    return _CLASSES[kind](value)


def fits(kind: SchemaType, value: int) -> bool:
    """Return True if a whole number is in the range of a type."""
    limit = 1 << (WIDTHS[kind] - 1)
    return -limit <= value < limit


def wrap(value: int, bits: int) -> int:
    """Return the low bits of a whole number as a signed one, like Java's narrowing."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def big_decimal(text: str) -> Decimal:
    """Return `new BigDecimal(text)`.

    Raises:
        NotANumberError: it is not a number in Java.
    """
    if not _BIG_DECIMAL.fullmatch(text) or len(text) > MAX_DIGITS:
        raise NotANumberError(text[:80])
    return Decimal(text)


def scale(value: Decimal) -> int:
    """Return `BigDecimal.scale()`: digits after the point, negative for a number with a positive exponent."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "only finite numbers are supported"
    return -exponent


def whole(value: Decimal) -> int:
    """Return `BigDecimal.longValue()` without the fraction, exact within 64 bits."""
    if value.is_zero() or value.adjusted() < 0:
        return 0
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "only finite numbers are supported"
    number = int("".join(map(str, digits)))
    if exponent >= 64:
        # A multiple of 2**64 for any digits.
        return 0
    power: int = 10 ** abs(exponent)
    shifted = number * power if exponent >= 0 else number // power
    return -shifted if sign else shifted


def nearest_float32(value: int | Decimal, text: str | None = None) -> Float32:
    """Return the `Float32` next to a number, rounded once like Java: by way of a `double` some would be rounded
    twice.
    """
    if isinstance(value, Decimal) and not -400 < value.adjusted() < 400:
        return Float32(float(value), text)
    exact = Fraction(value)
    try:
        double = float(exact)
    except OverflowError:
        return Float32(math.inf if value > 0 else -math.inf, text)
    if math.isfinite(double) and (rounded := Fraction(double)) != exact and not _is_odd(double):
        # Of the two doubles around the number, the odd one keeps the information for the second rounding.
        double = math.nextafter(double, math.inf if exact > rounded else -math.inf)
    return Float32(double, text)


def _is_odd(double: float) -> bool:
    return bool(binary.unpack("<q", binary.pack("<d", double))[0] & 1)


def masking_number(sample: Value, text: str) -> Value:
    """Return a replacement text as a number of the class of `sample` (`Values.convertToInteger` and the like).

    Raises:
        DataError: the text is not a number, or the class cannot be replaced.
    """
    if isinstance(sample, str):
        return text
    if isinstance(sample, bool) or not isinstance(sample, int | float | Decimal):
        raise DataError(f"Cannot mask value of type class {class_name(sample)} with custom replacement.")
    try:
        number = big_decimal(text)
    except NotANumberError:
        raise DataError(f"Unable to convert {text} (class java.lang.String) to a number") from None
    if isinstance(sample, Decimal):
        return number
    if isinstance(sample, float):
        return Float32(float(number)) if isinstance(sample, Float32) else Float64(float(number))
    for kind, made in ((SchemaType.INT8, Int8), (SchemaType.INT16, Int16), (SchemaType.INT32, Int32)):
        if isinstance(sample, made):
            return made(wrap(whole(number), WIDTHS[kind]))
    return wrap(whole(number), 64)


def cast_to_integer(kind: SchemaType, value: Value) -> int:
    """Return the result of `Cast` from a scalar to one of the whole types.

    Raises:
        NotANumberError: a text is no number, or out of range.
        DataError: the class cannot be cast.
    """
    if isinstance(value, bool):
        return integer_of(kind, int(value))
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value) or len(value) > MAX_DIGITS or not fits(kind, int(value)):
            raise NotANumberError(value[:80])
        return integer_of(kind, int(value))
    bits = WIDTHS[kind]
    if isinstance(value, int):
        # More than 64 bits exist only here: such a number is rejected rather than cut in two steps.
        if not fits(SchemaType.INT64, value):
            raise NotANumberError(str(value)[:80])
        return integer_of(kind, wrap(value, bits))
    if isinstance(value, float):
        return integer_of(kind, wrap(_saturate(value, max(bits, 32)), bits))
    if isinstance(value, Decimal):
        return integer_of(kind, wrap(whole(value), bits))
    raise DataError(f"Unexpected type in Cast transformation: class {class_name(value)}")


def cast_to_float(kind: SchemaType, value: Value) -> float:
    """Return the result of `Cast` from a scalar to one of the floating types; errors as in `cast_to_integer`."""
    narrow = kind is SchemaType.FLOAT32
    if isinstance(value, str):
        return _parsed_float(value, narrow=narrow)
    if isinstance(value, bool | float):
        return Float32(float(value)) if narrow else Float64(float(value))
    if isinstance(value, int | Decimal):
        return nearest_float32(value) if narrow else Float64(_nearest_double(value))
    raise DataError(f"Unexpected type in Cast transformation: class {class_name(value)}")


def cast_to_boolean(value: Value) -> bool:
    """Return the result of `Cast` to `boolean`: true for a number whose whole part is not zero, and for the text
    `true`.

    Raises:
        DataError: the class cannot be cast.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.lower() == "true"
    if isinstance(value, int):
        return value != 0
    if isinstance(value, float):
        return _saturate(value, 64) != 0
    if isinstance(value, Decimal):
        return wrap(whole(value), 64) != 0
    raise DataError(f"Unexpected type in Cast transformation: class {class_name(value)}")


def _saturate(value: float, bits: int) -> int:
    if math.isnan(value):
        return 0
    limit = 1 << (bits - 1)
    if math.isinf(value):
        return limit - 1 if value > 0 else -limit
    return max(-limit, min(limit - 1, int(value)))


def _nearest_double(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _parsed_float(text: str, *, narrow: bool) -> float:
    trimmed = text.strip(_BLANKS)
    if named := _FLOAT_NAME.fullmatch(trimmed):
        number = float(named[1] + ("nan" if named[2] == "NaN" else "inf"))
        return Float32(number) if narrow else Float64(number)
    found = _FLOAT.fullmatch(trimmed)
    if found is None or len(trimmed) > MAX_DIGITS:
        raise NotANumberError(text[:80])
    return nearest_float32(Decimal(found[1])) if narrow else Float64(float(found[1]))
