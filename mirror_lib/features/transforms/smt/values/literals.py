"""The literal of `InsertHeader`, parsed like `org.apache.kafka.connect.data.Values.parseString`."""

from __future__ import annotations

import re

from mirror_lib.features.transforms.smt.values.data import (
    DATE,
    DECIMAL_NAME,
    STRING,
    TIME,
    TIMESTAMP,
    DataError,
    Float64,
    Moment,
    Schema,
    SchemaType,
    Value,
)
from mirror_lib.features.transforms.smt.values.date_format import DateFormat
from mirror_lib.features.transforms.smt.values.numbers import (
    NotANumberError,
    big_decimal,
    fits,
    integer_of,
    nearest_float32,
    scale,
    whole,
)

_BLANKS = "".join(map(chr, range(0x21)))
#: Ends of Connect's tokens, unless preceded by a backslash.
_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\.|[^\\:,{}\[\]"]|\\\Z)+', re.DOTALL)
#: Schema and pattern of a text, by its length.
_TEMPORAL = {
    10: (DATE, DateFormat.compile("yyyy-MM-dd")),
    13: (TIME, DateFormat.compile("HH:mm:ss.SSS'Z'")),
    24: (TIMESTAMP, DateFormat.compile("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")),
}


def parse_literal(text: str) -> tuple[Schema | None, Value]:
    """Return schema and value of a literal: null, a boolean, the narrowest number, a date, or else the text.

    As in Connect a number ends at the first of `:,{}[]"`, and the rest is lost: `10:30` is the number 10.

    Raises:
        ValueError: it begins an array or a map, which are not supported; the message completes "must be".
    """
    stripped = text.strip(_BLANKS)
    fixed: dict[str, tuple[Schema | None, Value]] = {
        "null": (None, None),
        "true": (Schema(SchemaType.BOOLEAN), True),
        "false": (Schema(SchemaType.BOOLEAN), False),
    }
    if stripped in fixed:
        return fixed[stripped]
    if stripped.startswith(("[", "{")):
        raise ValueError("a text, a number, a boolean or a date; arrays and maps are not supported here")
    tokens = _TOKEN.findall(text)
    while len(tokens) > 1 and not tokens[0].strip():
        del tokens[0]
    token = tokens[0].strip(_BLANKS) if tokens else ""
    if token[:1].isdigit():
        temporal = _temporal(token + "".join(tokens[1:5])) if len(tokens) >= 5 else None
        temporal = temporal or _temporal(token)
        if temporal is not None:
            return temporal
    if token[:1].isdigit() or token[:1] in ("+", "-"):
        try:
            return _number(token)
        except NotANumberError:
            pass
    return STRING, text


def _temporal(token: str) -> tuple[Schema, Value] | None:
    plain = token.replace("\\:", ":")
    if len(plain) not in _TEMPORAL:
        return None
    schema, pattern = _TEMPORAL[len(plain)]
    try:
        return schema, Moment(pattern.parse(plain))
    except DataError:
        return None


def _number(token: str) -> tuple[Schema, Value]:
    number = big_decimal(token)
    if number == number.to_integral_value() and fits(SchemaType.INT64, whole(number)) and number.adjusted() < 20:
        kind = next(kind for kind in _INTEGERS if fits(kind, whole(number)))
        return Schema(kind), integer_of(kind, whole(number))
    narrow, wide = nearest_float32(number), Float64(float(number))
    if scale(number) != 0 and abs(narrow) != float("inf"):
        return Schema(SchemaType.FLOAT32), narrow
    if scale(number) != 0 and abs(wide) != float("inf"):
        return Schema(SchemaType.FLOAT64), wide
    parameters = (("scale", str(scale(number))),)
    return Schema(SchemaType.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters), number


_INTEGERS = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)
