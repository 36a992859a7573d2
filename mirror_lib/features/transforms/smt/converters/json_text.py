"""JSON as text, read and written like Jackson does for `JsonConverter`, except that no number loses a digit.

A whole number becomes an `int` of any size. One with a point or an exponent becomes a `Float64`: the `double` that
Connect would see, with its original text, which is written again if no transform changes the number. Connect itself
cuts whole numbers to 64 bits and writes the others as a `double` (`1.10` as `1.1`).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NoReturn

from mirror_lib.features.transforms.smt.values.data import (
    DataError,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Value,
    class_name,
)
from mirror_lib.features.transforms.smt.values.java_strings import decimal_text, number_text
from mirror_lib.features.transforms.smt.values.numbers import MAX_DIGITS

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_SPECIAL = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')


def read_json(data: bytes) -> Any:
    """Return the value of a text in UTF-8: None, booleans, `int`, `Float64`, `str`, lists and dicts in the text's
    order.

    Jackson would accept some texts and lose a part of them: an empty one, and one with something after its value. Those
    are rejected, and so are whole numbers with leading zeros. Of equal names the last one counts, like there.

    Raises:
        DataError: it is not such a text.
    """
    # The fastest path, taken for nearly every record: reading is a large part of a chain's cost.
    if len(data) <= MAX_DIGITS or _TOO_LONG.search(data) is None:
        try:
            text = data.decode()
            value, end = _SCAN(text, 0)
            if end == len(text):
                return value
        except (ValueError, StopIteration, RecursionError):
            # Blanks or a mark around it, and errors, are handled below.
            pass
    try:
        return _DECODER.decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"the text is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise DataError(f"the text is not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise DataError("the JSON is nested too deeply") from error


def read_member(data: bytes, before: str) -> tuple[Any, str] | None:
    """Return the member of an object after a text, and the rest; None if full parsing is needed.

    The value is the one that `read_json` would return.
    """
    if len(data) > MAX_DIGITS and _TOO_LONG.search(data) is not None:
        return None
    try:
        text = data.decode()
        if not text.startswith(before):
            return None
        value, end = _SCAN(text, len(before))
    except (ValueError, StopIteration, RecursionError):
        return None
    return value, text[end:]


def write_json(value: Value) -> bytes:
    """Return the text of a value that consists of the types of `read_json`, and of decimals.

    Raises:
        DataError: it contains something else, or is nested too deeply.
    """
    parts: list[str] = []
    try:
        _write(value, parts)
    except RecursionError as error:
        raise DataError("the value is nested too deeply for JSON") from error
    return "".join(parts).encode("utf-8")


def schemaless_json(value: Value) -> bytes | None:
    """Return the text of a value without a schema, bytes as base64; None if full encoding is needed.

    The result of `write_json` for nearly all records, several times as fast.
    """
    try:
        text = _WRITERS[type(value)](value)
    except (KeyError, TypeError, RecursionError):
        return None
    # Escapes that Jackson writes differently, and characters that it escapes.
    if "\\u" in text or (not text.isascii() and _BEYOND.search(text) is not None):
        return None
    return text.encode()


class _Names(dict[str, str]):
    """Names of an object's members as they are written, including the colon: records of a topic have the same."""

    def __missing__(self, name: str) -> str:
        if len(self) >= _MOST_NAMES:
            self.clear()
        made = self[name] = f"{encode_basestring(name)}:"
        return made


def _object(value: dict[str, Value]) -> str:
    names, writers = _NAMES, _WRITERS
    return "{" + ",".join([names[name] + writers[type(each)](each) for name, each in value.items()]) + "}"


def _array(value: list[Value]) -> str:
    writers = _WRITERS
    return "[" + ",".join([writers[type(each)](each) for each in value]) + "]"


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise DataError(f"a number has {len(text)} digits, more than {MAX_DIGITS}")
    return int(text)


def _number(text: str) -> Float64:
    if len(text) > MAX_DIGITS:
        raise DataError(f"a number has {len(text)} characters, more than {MAX_DIGITS}")
    # Jackson reads a decimal first, and those have no negative zero. Built like `Float64`, without the cost of its
    # call.
    made = _NEW_FLOAT(Float64, float(text) + 0.0)
    made.text = text
    return made


def _no_number(name: str) -> NoReturn:
    raise DataError(f"the text is not JSON: {name} is not a number there")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_no_number)
#: Without checking the lengths of whole numbers.
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder(parse_float=_number, parse_constant=_no_number))[
    "scan_once"
]


def _write(value: Value, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_quote(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, int):
        parts.append(int.__repr__(value))
    elif isinstance(value, float):
        parts.append(_float_text(value))
    elif isinstance(value, Decimal):
        parts.append(decimal_text(value))
    elif isinstance(value, dict):
        opening = "{"
        for name, member in value.items():
            parts.append(f"{opening}{_quote(name)}:")
            _write(member, parts)
            opening = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        opening = "["
        for member in value:
            parts.append(opening)
            _write(member, parts)
            opening = ","
        parts.append("]" if value else "[]")
    else:
        raise DataError(f"class {class_name(value)} cannot be written as JSON")


def _float_text(value: float) -> str:
    if isinstance(value, Float64 | Float32) and value.text is not None:
        return value.text
    text = number_text(value)
    return text if math.isfinite(value) else f'"{text}"'


_TOO_LONG = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MAX_DIGITS + 1))
_NEW_FLOAT: Callable[[type[Float64], float], Float64] = float.__new__
_MOST_NAMES = 4096
_NAMES = _Names()
_BEYOND = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
#: For values of exactly these types.
_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    dict: _object,
    list: _array,
    type(None): {None: "null"}.__getitem__,
    bool: {True: "true", False: "false"}.__getitem__,
    **dict.fromkeys((int, Int8, Int16, Int32), int.__repr__),
    **dict.fromkeys((float, Float32, Float64), _float_text),
    bytes: lambda value: f'"{base64.b64encode(value).decode("ascii")}"',
}


def _quote(text: str) -> str:
    return '"' + _SPECIAL.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04X}"
    # Jackson writes characters beyond 16 bits as the two surrogates of Java's strings.
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
