"""Which schemas records name, and what becomes of them on the target; registries are asked that run here.

Registries of keys and values with schema ids; what Spark makes with them is in `integration/spark`.
"""

from __future__ import annotations

import json
from collections import Counter
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms import model
from mirror_lib.features.transforms.model import (
    ColumnExpressions,
    DataFormat,
    DecodeSettings,
    Decoding,
    FunctionKind,
    FunctionReference,
    Transform,
    TransformChain,
)
from mirror_lib.features.transforms.preview.preview import RecordPlace, SourceRecord
from mirror_lib.features.transforms.schema_use.preflight import (
    Finding,
    Lookalike,
    Outcome,
    SchemaPreflight,
    SchemaUse,
    SideUses,
    TopicSample,
    decoded_formats,
    is_written,
    used_schemas,
)
from mirror_lib.features.transforms.schema_use.registry_answers import Registries, ask, register
from mirror_lib.features.transforms.schema_use.registry_sides import (
    SchemaRenumbering,
    SideReader,
    SideRenumbering,
    access_of,
    reader_of,
)
from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.errors import SchemaMissingError, SchemaRegistryUnreachableError
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference, SchemaType
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import BasicLogin, RegistryAccess
from mirror_lib.features.transforms.schemas.wire import (
    KEY_SCHEMA_HEADER,
    LARGEST_ID,
    VALUE_SCHEMA_HEADER,
    Place,
    frame_bytes,
)
from spark_jobs.sealing import seal
from spark_jobs.transforms.registry_tasks import decode_sides
from tools.testbed.schema_registry import LocalSchemaRegistry

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
IN_FRONT, IN_HEADER = Place.PREFIX, Place.HEADER
ORDER = Schema(SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}))
STRING, LONG = Schema(SchemaType.AVRO, '"string"'), Schema(SchemaType.AVRO, '"long"')
AVRO = Decoding(DataFormat.AVRO)
TOPICS = {"orders": "A.orders"}
MASK = FunctionReference("shop", "mask", FunctionKind.ARROW)


def record(value: bytes | None = None, key: bytes | None = None, **headers: bytes) -> SourceRecord:
    return SourceRecord(RecordPlace(0, 0), key, value, tuple(headers.items()))


def uses(*records: SourceRecord, decoded: bool = True, side: str = "value") -> SideUses:
    return SideUses("orders", "A.orders", side, decoded, used_schemas(records, side))


def framed(number: int | UUID) -> SourceRecord:
    return record(frame_bytes(number) + b"payload")


class TestUsedSchemas:
    def test_given_frames_in_all_places_then_each_is_counted(self) -> None:
        found = used_schemas(
            [
                framed(7),
                framed(7),
                framed(GUID),
                record(b"payload", **{VALUE_SCHEMA_HEADER: frame_bytes(7)}),
                record(b"payload", **{VALUE_SCHEMA_HEADER: frame_bytes(GUID)}),
                record(b"payload", **{KEY_SCHEMA_HEADER: frame_bytes(9)}),
            ],
            "value",
        )

        assert found == {
            SchemaUse(7, IN_FRONT): 2,
            SchemaUse(GUID, IN_FRONT): 1,
            SchemaUse(7, IN_HEADER): 1,
            SchemaUse(GUID, IN_HEADER): 1,
        }

    def test_given_keys_and_values_then_each_side_has_its_own_and_nothing_without_a_frame(self) -> None:
        given_record = record(frame_bytes(1) + b"v", frame_bytes(2) + b"k")

        assert used_schemas([given_record], "key") == {SchemaUse(2, IN_FRONT): 1}
        assert used_schemas([given_record], "value") == {SchemaUse(1, IN_FRONT): 1}

        for value in [None, b"", b"{}", b"\0\0\0\1", b"\0\0\0\0\0x", b"\1short"]:
            assert not used_schemas([record(value)], "value"), value

    @given(st.lists(st.one_of(st.integers(1, LARGEST_ID), st.uuids())))
    def test_given_any_records_then_every_one_is_counted_once(self, named: list[int | UUID]) -> None:
        found = used_schemas(map(framed, named), "value")

        assert found == Counter(SchemaUse(each, IN_FRONT) for each in named)


class TestChains:
    def test_given_transforms_then_the_formats_of_the_registry_are_those_of_a_side(self) -> None:
        as_json = Transform("a", decode=DecodeSettings(Decoding(DataFormat.JSON, "a INT"), AVRO))
        as_protobuf = Transform("b", decode=DecodeSettings(value=Decoding(DataFormat.PROTOBUF)))
        chain = TransformChain((as_json, as_protobuf, as_json))

        assert decoded_formats(chain, "key") == ()
        assert decoded_formats(chain, "value") == (DataFormat.AVRO, DataFormat.PROTOBUF)

    def test_given_a_transform_then_it_is_known_whether_it_writes_by_a_schema(self) -> None:
        for transform, expected in [
            (Transform("filter", filter="true", decode=DecodeSettings(value=AVRO)), False),
            (Transform("key", columns=ColumnExpressions(key="value.a"), decode=DecodeSettings(value=AVRO)), False),
            (Transform("undecoded", columns=ColumnExpressions(value="value")), False),
            (Transform("value", columns=ColumnExpressions(value="value"), decode=DecodeSettings(value=AVRO)), True),
            (Transform("function", function=MASK, decode=DecodeSettings(value=AVRO)), True),
        ]:
            assert is_written(TransformChain((transform,)), "value") is expected, transform


@pytest.fixture
def registries(source: LocalSchemaRegistry, target: LocalSchemaRegistry) -> Registries:
    return Registries(*(SchemaRegistry(RegistryAccess((each.url,))) for each in (source, target)))


@pytest.fixture
def renumbering(registries: Registries) -> SchemaRenumbering:
    return SchemaRenumbering(SideRenumbering("value", registries.source.access, registries.target.access, TOPICS))


@pytest.fixture
def order(registries: Registries) -> SourceRecord:
    """A record whose schema the target does not have; its id is free there."""
    number = registries.source.register("orders-value", ORDER)
    return record(AvroCodec(registries.source).encode(number, {"a": 1}))


def ask_ids(registries: Registries, asked: SideUses) -> tuple[Finding, ...]:
    """What becomes of ids that are taken for ids."""
    found = ask(registries, asked)
    assert not isinstance(found, Lookalike)
    return tuple(found)


def outcomes(registries: Registries, asked: SideUses) -> list[tuple[Outcome, int | None, bool]]:
    return [(each.outcome, each.target_id, each.is_taken) for each in ask_ids(registries, asked)]


class TestAsk:
    def test_given_numbers_that_look_like_ids_then_a_kept_side_is_a_lookalike_after_few_questions(
        self, registries: Registries, source: LocalSchemaRegistry, target: LocalSchemaRegistry
    ) -> None:
        # Longs as Java serializes them, such as microseconds since 1970.
        records = [record(key=(2**50 + number * 2**24).to_bytes(8)) for number in range(1_000)]
        asked = uses(*records, decoded=False, side="key")
        assert len(asked.ids) == 1_000

        found = ask(registries, asked)

        assert isinstance(found, Lookalike)
        assert found.records == 1_000
        assert len(source.asked) < 50
        assert not target.asked

    def test_given_ids_that_transforms_do_not_read_then_a_decoded_side_says_so_and_a_kept_one_is_asked(
        self, registries: Registries, order: SourceRecord
    ) -> None:
        registries.target.register("A.orders-value", ORDER)
        in_header = record(b"payload", **{VALUE_SCHEMA_HEADER: frame_bytes(1)})

        assert [each for each, *_ in outcomes(registries, uses(in_header))] == [Outcome.NOT_READ]
        assert [each for each, *_ in outcomes(registries, uses(framed(GUID)))] == [Outcome.NOT_READ]
        assert [each for each, *_ in outcomes(registries, uses(in_header, decoded=False))] == [Outcome.SAME]

    def test_given_guids_then_the_target_is_asked_and_they_are_registered(
        self, registries: Registries, source: LocalSchemaRegistry, order: SourceRecord
    ) -> None:
        _, answer = source.answer("GET", "/schemas/ids/1", None, b"")
        asked = uses(order, framed(UUID(answer["guid"])), framed(GUID), decoded=False)
        registries.target.register("other", STRING)

        found = ask_ids(registries, asked)
        by_guid = {each.use.schema: each for each in found}
        assert by_guid[GUID].outcome is Outcome.UNKNOWN
        assert by_guid[UUID(answer["guid"])].outcome is Outcome.MISSING

        # The id is taken by another schema: only the GUID can be helped.
        done = list(register(registries, asked, found))

        assert [each.subject for each in done] == ["A.orders-value"]
        again = ask_ids(registries, asked)
        assert {each.outcome for each in again if each.use.schema == UUID(answer["guid"])} == {Outcome.SAME}

    def test_given_any_outcome_of_an_id_then_a_run_finds_the_same(
        self, registries: Registries, order: SourceRecord, renumbering: SchemaRenumbering
    ) -> None:
        asked = uses(order, framed(99))
        for number in (1, 99):
            with pytest.raises(SchemaMissingError):
                renumbering.target_id("orders", number)
        found = ask_ids(registries, asked)
        assert [each.outcome for each in found] == [Outcome.MISSING, Outcome.UNKNOWN]
        registries.target.register("other", STRING)

        list(register(registries, asked, found))

        assert outcomes(registries, asked)[0] == (Outcome.REWRITTEN, renumbering.target_id("orders", 1), True)


class TestRegister:
    def test_given_what_is_missing_when_registered_then_all_is_rewritten_and_again_changes_nothing(
        self, registries: Registries
    ) -> None:
        registries.target.register("other", STRING)
        registries.source.register("address", LONG)
        imports = Schema(SchemaType.AVRO, ORDER.text, (SchemaReference("x", "address", 1),))
        number = registries.source.register("orders-value", imports)
        asked = uses(framed(number))
        found = ask_ids(registries, asked)

        done = [each.subject for each in register(registries, asked, found)]

        assert done == ["address", "A.orders-value"]
        # The address has got the id that the order has at the source.
        assert number == 2
        assert outcomes(registries, asked) == [(Outcome.REWRITTEN, 3, True)]
        assert registries.target.subjects() == ("A.orders-value", "address", "other")
        list(register(registries, asked, found))
        assert registries.target.subjects() == ("A.orders-value", "address", "other")


def finding(outcome: Outcome, *, topic: str = "orders", number: int = 7, records: int = 3) -> Finding:
    return Finding(topic, "value", SchemaUse(number, IN_FRONT), records, outcome, 9, f"A.{topic}-value")


class TestReport:
    SAMPLES = (TopicSample("orders", 1_000, 5_000), TopicSample("carts", 10, 10, 1), TopicSample("empty", 0, 0))

    def test_given_an_outcome_then_it_is_in_order_when_readers_find_the_schema(self) -> None:
        for outcome, in_order in [(each, each in (Outcome.SAME, Outcome.REWRITTEN)) for each in Outcome]:
            report = SchemaPreflight(self.SAMPLES, (finding(Outcome.SAME), finding(outcome, number=8)))

            assert report.in_order is in_order, outcome
            assert report.to_dict()["in_order"] is in_order, outcome
            assert [each["resolves"] for each in report.to_dict()["schemas"]] == [True, in_order], outcome

    def test_given_lookalikes_then_they_count_only_where_the_source_knows_nothing_and_without_findings_it_is_in_order(
        self,
    ) -> None:
        numbers = (Lookalike("carts", "key", ("232", "233"), 10),)

        assert SchemaPreflight(self.SAMPLES, (finding(Outcome.SAME),), numbers).in_order
        strange = SchemaPreflight(self.SAMPLES, (), numbers)
        assert not strange.in_order
        assert any("Is it the registry of the producers?" in line for line in strange.summary())

        report = SchemaPreflight(self.SAMPLES, ())

        assert report.in_order
        assert list(report.lines()) == []
        assert list(report.summary())[-1] == "No schemas were found."

    def test_given_a_report_then_its_data_is_json_and_tells_ids_and_guids_apart(self) -> None:
        by_guid = Finding("orders", "key", SchemaUse(GUID, IN_HEADER), 1, Outcome.SAME)
        report = SchemaPreflight(self.SAMPLES, (finding(Outcome.MISSING), by_guid))

        found = json.loads(json.dumps(report.to_dict()))

        assert [(each["id"], each["guid"], each["place"]) for each in found["schemas"]] == [
            (7, None, "prefix"),
            (None, str(GUID), "header"),
        ]
        assert found["topics"][1] == {"topic": "carts", "records": 10, "held": 10, "unreadable": 1}


def test_a_subject_of_another_format_is_refused_and_the_login_is_used(registries: Registries) -> None:
    registries.source.register("orders-value", ORDER)

    with pytest.raises(ConfigurationError, match=r"orders-value is AVRO, but decode\.value is protobuf"):
        reader_of("value", DataFormat.PROTOBUF, model.SchemaRegistry(registries.source.access.urls), TOPICS)
    assert access_of(model.SchemaRegistry(("https://r",), "ann", "secret")).login == BasicLogin("ann", "secret")
    assert access_of(model.SchemaRegistry(("https://r",))).login is None


def test_a_registry_that_does_not_answer_is_no_fault_of_the_record() -> None:
    access = RegistryAccess(("http://127.0.0.1:1",), attempts=1)
    gone = SideReader("value", DataFormat.AVRO, access, {"orders": 1})
    rows = pa.record_batch({"value": pa.array([b"\0\0\0\0\1\0"]), "__mirror_from": pa.array(["orders"])})

    with pytest.raises(SchemaRegistryUnreachableError):
        list(decode_sides(*seal([("__mirror_decoded_value", gone)]), [rows]))


def test_ids_are_asked_for_once_and_one_that_a_registry_lacks_is_told(
    registries: Registries, target: LocalSchemaRegistry, renumbering: SchemaRenumbering
) -> None:
    number = registries.source.register("orders-value", ORDER)

    with pytest.raises(SchemaMissingError, match=r"the target's .* does not have .* under A\.orders-value"):
        renumbering.target_id("orders", number)
    registries.target.register("other", STRING)
    there = registries.target.register("A.orders-value", ORDER)
    assert renumbering.target_id("orders", number) == there
    asked = len(target.asked)
    assert renumbering.target_id("orders", number) == there
    assert len(target.asked) == asked
    assert [renumbering.renumber("orders", each) for each in (None, b"no id")] == [None, b"no id"]
    with pytest.raises(SchemaMissingError, match="the source's schema registry does not have"):
        renumbering.target_id("orders", 99)
