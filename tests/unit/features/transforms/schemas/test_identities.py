"""Ids of the source compared with the target, by look-ups that are plain dicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.schemas.identities import (
    Identity,
    IdentityPlan,
    Registration,
    SourceSchema,
    SourceSchemas,
    Verdict,
    plan_identities,
)
from mirror_lib.features.transforms.schemas.model import (
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaType,
    SubjectVersion,
)

STRING, LONG, INT = (Schema(SchemaType.AVRO, f'"{name}"') for name in ("string", "long", "int"))


@dataclass(slots=True)
class Target:
    """A registry's look-ups; schemas get the ids that they are given."""

    schemas: dict[int, Schema] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)

    def with_schema(self, number: int, subject: str, schema: Schema) -> Target:
        self.schemas[number] = replace(schema, id=number)
        self.subjects.setdefault(subject, []).append(number)
        return self

    def find(self, schema_id: int) -> Schema | None:
        return self.schemas.get(schema_id)

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        for version, number in enumerate(self.subjects.get(subject, ()), start=1):
            if self.schemas[number] == schema:
                return RegisteredSchema(subject, version, number, self.schemas[number])
        return None


def source(**in_use: tuple[int, Schema]) -> SourceSchemas:
    """Ids in use by subject."""
    return SourceSchemas({number: SourceSchema(schema, (subject,)) for subject, (number, schema) in in_use.items()}, {})


def importing(*places: SubjectVersion) -> Schema:
    references = tuple(SchemaReference(f"name {place}", *place) for place in places)
    return Schema(SchemaType.JSON, "{}", references)


def target_ids(plan: IdentityPlan) -> dict[int, int | None]:
    return {each.source_id: each.target_id for each in plan.identities}


SPACED, DENSE = (
    Schema(SchemaType.AVRO, text)
    for text in ('{"type": "record", "name": "R", "fields": []}', '{"name":"R","type":"record","fields":[]}')
)
#: The schema in use at the source under the id 5 and the subject a, what the target has, and what is made of it.
VERDICTS = {
    "the same": (STRING, Target().with_schema(5, "a", STRING), Identity(5, Verdict.SAME, 5, "a")),
    "the same in another layout": (SPACED, Target().with_schema(5, "a", DENSE), Identity(5, Verdict.SAME, 5)),
    "the same id still leads to it": (STRING, Target().with_schema(5, "other", STRING), Identity(5, Verdict.SAME, 5)),
    "under another id": (STRING, Target().with_schema(8, "a", STRING), Identity(5, Verdict.ELSEWHERE, 8, "a")),
    "missing": (STRING, Target(), Identity(5, Verdict.MISSING, None, "a")),
    "another schema": (STRING, Target().with_schema(5, "z", LONG), Identity(5, Verdict.CONFLICT, None, "a")),
    "another schema, and its own elsewhere": (
        STRING,
        Target().with_schema(5, "z", LONG).with_schema(8, "a", STRING),
        Identity(5, Verdict.CONFLICT, 8, "a"),
    ),
}


class TestVerdicts:
    def test_given_a_schema_in_use_then_the_target_decides_what_is_to_be_done(self, subtests: pytest.Subtests) -> None:
        for case, (schema, target, identity) in VERDICTS.items():
            with subtests.test(case):
                plan = plan_identities(source(a=(5, schema)), target)
                assert plan.identities == (identity,)
                assert plan.registrations == (() if identity.target_id else (Registration("a", STRING),))
                assert plan.in_order is (identity.verdict is Verdict.SAME)

    def test_given_an_id_that_the_source_does_not_know_then_it_is_told_and_nothing_else(self) -> None:
        plan = plan_identities(SourceSchemas({7: None}, {}), Target().with_schema(7, "a", STRING))

        assert plan == IdentityPlan((), unknown=(7,))
        assert not plan.in_order


class TestSubjects:
    def test_given_several_subjects_then_the_first_that_holds_it_counts(self) -> None:
        in_use = SourceSchemas({5: SourceSchema(STRING, ("a", "b", "c"))}, {})

        assert target_ids(plan_identities(in_use, Target().with_schema(8, "b", STRING))) == {5: 8}
        assert plan_identities(in_use, Target()).registrations == (Registration("a", STRING),)

    def test_given_renamed_topics_then_subjects_are_those_of_the_target(self) -> None:
        renamed = "prod.{}".format
        target = Target().with_schema(8, "prod.a", STRING)

        plan = plan_identities(source(a=(5, STRING), b=(6, LONG)), target, target_subject=renamed)

        assert plan.identities == (
            Identity(5, Verdict.ELSEWHERE, 8, "prod.a"),
            Identity(6, Verdict.MISSING, None, "prod.b"),
        )


class TestReferences:
    LEAF, INNER = SubjectVersion("leaf", 3), SubjectVersion("inner", 1)

    def nested(self) -> SourceSchemas:
        """A schema that imports one that imports a leaf."""
        return SourceSchemas(
            {9: SourceSchema(importing(self.INNER, self.LEAF), ("outer",))},
            {self.INNER: importing(self.LEAF), self.LEAF: STRING},
        )

    def test_given_nothing_at_the_target_then_what_is_imported_comes_first(self) -> None:
        plan = plan_identities(self.nested(), Target())

        assert [(each.subject, each.imported_from) for each in plan.registrations] == [
            ("leaf", (self.LEAF,)),
            ("inner", (self.INNER,)),
            ("outer", ()),
        ]

    def test_given_what_is_imported_under_another_version_then_the_schema_is_still_found(self) -> None:
        leaf, inner = SubjectVersion("leaf", 1), SubjectVersion("inner", 1)
        outer = self.nested().in_use[9]
        assert outer is not None
        target = Target().with_schema(1, "leaf", STRING)
        target.with_schema(2, "inner", importing(self.LEAF).with_references([leaf]))
        target.with_schema(3, "outer", outer.schema.with_references([inner, leaf]))

        plan = plan_identities(self.nested(), target)

        assert plan.identities == (Identity(9, Verdict.ELSEWHERE, 3, "outer"),)
        assert dict(plan.kept) == {self.INNER: inner, self.LEAF: leaf}

    def test_given_a_part_of_it_at_the_target_then_only_the_rest_is_registered(self) -> None:
        plan = plan_identities(self.nested(), Target().with_schema(1, "leaf", STRING))

        assert [each.subject for each in plan.registrations] == ["inner", "outer"]
        assert plan.kept == ((self.LEAF, SubjectVersion("leaf", 1)),)

    def test_given_the_same_text_that_imports_something_else_then_it_is_another_schema(self) -> None:
        in_use = SourceSchemas({9: SourceSchema(importing(self.LEAF), ("outer",))}, {self.LEAF: STRING})
        target = Target().with_schema(1, "leaf", LONG).with_schema(2, "leaf", STRING)
        target.with_schema(9, "outer", importing(SubjectVersion("leaf", 1)))

        assert [each.verdict for each in plan_identities(in_use, target).identities] == [Verdict.CONFLICT]

    def test_given_an_imported_schema_that_is_in_use_itself_then_it_is_registered_once(self) -> None:
        leaf = SubjectVersion("leaf", 1)
        in_use = SourceSchemas(
            {1: SourceSchema(STRING, ("leaf",)), 2: SourceSchema(importing(leaf), ("outer",))}, {leaf: STRING}
        )

        plan = plan_identities(in_use, Target())

        assert [(each.subject, each.imported_from) for each in plan.registrations] == [("leaf", (leaf,)), ("outer", ())]


class TestPrinting:
    def test_given_a_plan_then_it_has_a_line_that_a_person_can_read_for_each_thing_to_know(self) -> None:
        for identity, text in [
            (Identity(5, Verdict.SAME, 5, "a"), "5: same id on the target"),
            (Identity(5, Verdict.ELSEWHERE, 8, "a"), "5: has the id 8 on the target (a)"),
            (Identity(5, Verdict.MISSING, None, "a"), "5: missing on the target, to be registered under a"),
            (Identity(5, Verdict.CONFLICT, 8, "a"), "5: another schema on the target; this schema has the id 8 there"),
            (
                Identity(5, Verdict.CONFLICT, None, "a"),
                "5: another schema on the target; this schema is to be registered under a",
            ),
        ]:
            assert str(identity) == text, text

        plan = plan_identities(SourceSchemas({5: SourceSchema(STRING, ("a",)), 6: None}, {}), Target())

        assert str(plan).splitlines() == [
            "5: missing on the target, to be registered under a",
            "register AVRO under a",
            "6: unknown on the source",
        ]
        assert str(plan_identities(SourceSchemas({}, {}), Target())) == "no schema ids in use"


schemas = st.sampled_from([STRING, LONG, INT])
registries = st.dictionaries(st.integers(1, 4), schemas, max_size=4)


@given(registries, registries)
def test_after_rewriting_every_id_that_is_not_to_be_registered_leads_to_its_schema(
    here: dict[int, Schema], there: dict[int, Schema]
) -> None:
    target = Target()
    for number, schema in there.items():
        target.with_schema(number, "a", schema)

    plan = plan_identities(
        SourceSchemas({number: SourceSchema(each, ("a",)) for number, each in here.items()}, {}), target
    )

    waiting = {registration.schema for registration in plan.registrations}
    for number, schema in here.items():
        if schema in waiting:
            assert schema not in there.values()
        else:
            assert there[target_ids(plan)[number] or number] == schema
