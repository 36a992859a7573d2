"""Two registries compared, and what is missing registered, against registries that run on this machine."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from mirror_lib.features.transforms.schemas.identities import Verdict
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference, SchemaType
from mirror_lib.features.transforms.schemas.preflight import compare, read_source, register_missing, subject_of_topic
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from tools.testbed.schema_registry import LocalSchemaRegistry

ADDRESS = Schema(SchemaType.AVRO, '{"type":"record","name":"shop.Address","fields":[{"name":"city","type":"string"}]}')
ORDER = Schema(
    SchemaType.AVRO,
    '{"type":"record","name":"shop.Order","fields":[{"name":"to","type":"shop.Address"}]}',
    (SchemaReference("shop.Address", "address", 1),),
)
STRING, LONG = Schema(SchemaType.AVRO, '"string"'), Schema(SchemaType.AVRO, '"long"')


class Pair(NamedTuple):
    source: SchemaRegistry
    target: SchemaRegistry


@pytest.fixture
def pair(source: LocalSchemaRegistry, target: LocalSchemaRegistry) -> Pair:
    return Pair(*(SchemaRegistry(RegistryAccess.of(each.url)) for each in (source, target)))


def test_given_a_target_with_schemas_of_its_own_then_the_ids_are_rewritten_after_registering(pair: Pair) -> None:
    pair.source.register("address", ADDRESS)
    number = pair.source.register("orders-value", ORDER)
    pair.target.register("address", STRING)
    pair.target.register("other", LONG)
    in_use = {number: ["orders-value"]}
    before = compare(*pair, in_use)
    assert [each.verdict for each in before.identities] == [Verdict.CONFLICT]

    register_missing(before, pair.target)

    after = compare(*pair, in_use)
    (identity,) = after.identities
    assert identity.target_id is not None
    found = pair.target.schema(identity.target_id)
    # On the target the address is the second version of its subject.
    assert found.references == (SchemaReference("shop.Address", "address", 2),)
    assert found.text == pair.source.schema(number).text
    assert after.registrations == ()


def test_given_an_empty_target_then_registering_puts_it_in_order_and_again_changes_nothing(pair: Pair) -> None:
    pair.source.register("address", ADDRESS)
    number = pair.source.register("orders-value", ORDER)
    in_use = {number: ["orders-value"]}
    plan = compare(*pair, in_use)

    for _ in range(2):
        register_missing(plan, pair.target)

    assert compare(*pair, in_use).in_order
    assert pair.target.subjects() == ("address", "orders-value")
    assert pair.target.version("orders-value", 1).id == 2
    assert pair.target.lookup("address", ADDRESS) is not None
    assert len(pair.target.places(2)) == 1


def test_given_a_target_context_then_the_plan_is_of_it(pair: Pair, target: LocalSchemaRegistry) -> None:
    lab = SchemaRegistry(RegistryAccess.of(target.url, context=".lab"))
    pair.target.register("z", LONG)
    number = pair.source.register("a", STRING)

    register_missing(compare(pair.source, lab, {number: ["a"]}), lab)

    assert compare(pair.source, lab, {number: ["a"]}).in_order


def test_given_a_deleted_subject_then_the_topics_own_subject_is_taken(pair: Pair, source: LocalSchemaRegistry) -> None:
    number = pair.source.register("orders-value", STRING)
    source.answer("DELETE", "/subjects/orders-value", None, b"")

    plan = compare(*pair, {number: [subject_of_topic("orders", key=False)]})

    assert [each.subject for each in plan.registrations] == ["orders-value"]


def test_given_a_schema_under_many_subjects_then_that_of_a_topic_where_it_was_seen_comes_first(pair: Pair) -> None:
    for subject in ("a-value", "b-key", "c-value"):
        number = pair.source.register(subject, STRING)

    found = read_source(pair.source, {number: [subject_of_topic("b", key=True), "d-value"]}).in_use[number]

    assert found.subjects == ("b-key", "a-value", "c-value", "d-value")
