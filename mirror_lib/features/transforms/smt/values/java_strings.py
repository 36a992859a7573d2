"""Values as Java writes them: `Object.toString()` and Connect's `Values.convertToString`.

Numbers are written as by Java 19 and later, with the fewest digits that identify the `double` or `float`.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import Decimal

from mirror_lib.features.transforms.smt.values.data import (
    DataError,
    Float32,
    Moment,
    Struct,
    Value,
    as_float32,
    class_name,
)
from mirror_lib.features.transforms.smt.values.date_format import DateFormat

_MILLISECONDS_PER_DAY = 86_400_000
_TIME = DateFormat.compile("HH:mm:ss.SSS'Z'")
_DATE = DateFormat.compile("yyyy-MM-dd")
_TIMESTAMP = DateFormat.compile("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def number_text(value: float) -> str:
    """Return `Double.toString`, or `Float.toString` for a `Float32`."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest(abs(float(value)), narrow=isinstance(value, Float32))
    if -3 <= exponent < 7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, *, narrow: bool) -> tuple[str, int]:
    """Return the decimal digits of a number and the power of ten of the first one."""
    # Java uses the nearest number of two digits even if one digit is enough.
    precision = 1
    text = f"{value:.{precision}e}"
    while (as_float32(float(text)) if narrow else float(text)) != value:
        precision += 1
        text = f"{value:.{precision}e}"
    mantissa, _, exponent = text.partition("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"


def decimal_text(value: Decimal) -> str:
    """Return `BigDecimal.toString`; Java has no negative zero."""
    return str(value.copy_abs()) if value.is_zero() else str(value)


def java_text(value: Value) -> str:
    """Return `Object.toString()` of a value, which `StringConverter` writes.

    Raises:
        DataError: Java's text has the object's address (`byte[]`), or depends on the machine's zone.
    """
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{java_text(key)}={java_text(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(java_text, value)) + "]"
    if isinstance(value, Struct):
        present = ((each.name, value.values.get(each.name)) for each in value.schema.fields)
        return (
            "Struct{" + ",".join(f"{name}={java_text(member)}" for name, member in present if member is not None) + "}"
        )
    if (text := _scalar_text(value)) is not None:
        return text
    raise DataError(f"a value of class {class_name(value)} has no text that is the same in every run")


def connect_text(value: Value) -> str:
    """Return `Values.convertToString`, which `SimpleHeaderConverter` writes; dates are in UTC."""
    return _append(value, embedded=False)


def moment_text(value: Moment) -> str:
    """Return ISO 8601 as chosen by `Values.dateFormatFor`: a time, a date, or both."""
    if value.milliseconds < _MILLISECONDS_PER_DAY:
        return _TIME.format(value.milliseconds)
    if value.milliseconds % _MILLISECONDS_PER_DAY == 0:
        return _DATE.format(value.milliseconds)
    return _TIMESTAMP.format(value.milliseconds)


def _scalar_text(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Decimal):
        return decimal_text(value)
    return value if isinstance(value, str) else None


def _append(value: Value, *, embedded: bool) -> str:
    mark: Callable[[str], str] = (lambda text: f'"{text}"') if embedded else (lambda text: text)
    if value is None:
        return "null"
    if isinstance(value, str):
        return mark(value.replace("\\", "\\\\").replace('"', '\\"')) if embedded else value
    if isinstance(value, bytes):
        return mark(base64.b64encode(value).decode("ascii"))
    if isinstance(value, Moment):
        return moment_text(value)
    if isinstance(value, list):
        return "[" + ",".join(_append(member, embedded=True) for member in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_entry(key, member) for key, member in value.items()) + "}"
    if isinstance(value, Struct):
        return "{" + ",".join(_entry(each.name, value.get(each.name)) for each in value.schema.fields) + "}"
    text = _scalar_text(value)
    if text is None:
        raise DataError(f"Failed to serialize unexpected value type {class_name(value)}")
    return text


def _entry(key: Value, member: Value) -> str:
    return f"{_append(key, embedded=True)}:{_append(member, embedded=True)}"
