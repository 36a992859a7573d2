"""The function of each SMT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mirror_lib.features.transforms.smt import conversions, fields, headers, model, routing, shapes
from mirror_lib.features.transforms.smt.record import SmtRecord


def _drop(_setting: model.Filter, _record: SmtRecord) -> None:
    return None


# The argument types differ from row to row, which a mapping cannot express.
_FUNCTIONS: Mapping[type[model.Transform], Callable[[Any, SmtRecord], SmtRecord | None]] = {
    model.Cast: conversions.cast,
    model.DropHeaders: headers.drop_headers,
    model.ExtractField: shapes.extract_field,
    model.Filter: _drop,
    model.Flatten: shapes.flatten,
    model.HeaderFrom: headers.header_from,
    model.HoistField: shapes.hoist_field,
    model.InsertField: fields.insert_field,
    model.InsertHeader: headers.insert_header,
    model.MaskField: fields.mask_field,
    model.RegexRouter: routing.regex_router,
    model.ReplaceField: fields.replace_field,
    model.TimestampConverter: conversions.timestamp_converter,
    model.TimestampRouter: routing.timestamp_router,
    model.ValueToKey: shapes.value_to_key,
}


def apply(transform: model.Transform, record: SmtRecord) -> SmtRecord | None:
    """Return the result of an SMT for a record, None if it drops it; a predicate is not evaluated.

    Raises:
        DataError: it rejects the record.
    """
    return function_of(transform)(transform, record)


def function_of(transform: model.Transform) -> Callable[[Any, SmtRecord], SmtRecord | None]:
    """Return the function of an SMT; it takes the SMT and a record."""
    return _FUNCTIONS[type(transform)]
