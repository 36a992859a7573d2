"""Flatten with defaults of structs, which JSON cannot hold: the rest is compared with Java's own class."""

from __future__ import annotations

from mirror_lib.features.transforms.smt.apply import apply
from mirror_lib.features.transforms.smt.model import Flatten
from mirror_lib.features.transforms.smt.record import Side, SmtRecord
from mirror_lib.features.transforms.smt.values.data import Field, Int32, Schema, SchemaType, Struct, struct_schema


def test_a_default_of_an_outer_struct_reaches_its_fields() -> None:
    inner = struct_schema([Field("b", Schema(SchemaType.INT32))])
    default = Struct.of(inner, [("b", Int32(7))])
    outer = struct_schema([Field("a", Schema(SchemaType.STRUCT, default=default, fields=inner.fields))])

    after = apply(Flatten(Side.VALUE), SmtRecord("t", value=Struct(outer, {}), value_schema=outer))

    assert after.value_schema is not None
    assert [(each.name, each.schema.default) for each in after.value_schema.fields] == [("a.b", Int32(7))]
