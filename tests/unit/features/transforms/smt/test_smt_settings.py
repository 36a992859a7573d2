"""Settings of transforms: what is read, what is refused, and that all problems come at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.model import SettingProblem
from mirror_lib.features.transforms.smt.record import Side
from mirror_lib.features.transforms.smt.settings import parse_settings

PACKAGE = "org.apache.kafka.connect.transforms"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}


def one(type_name: str, **options: str) -> dict[str, str]:
    """A chain of one transform `t`; `_` in the names of options stands for a dot."""
    named = {f"transforms.t.{name.replace('_', '.')}": text for name, text in options.items()}
    return {"transforms": "t", "transforms.t.type": f"{PACKAGE}.{type_name}", **named, **JSON}


def the_transform(settings: dict[str, str]) -> model.Transform:
    parsed = parse_settings(settings)
    assert parsed.chain is not None, parsed.problems
    return parsed.chain.stages[0].transform


def errors(settings: dict[str, str]) -> list[str]:
    """The keys of all errors."""
    return [problem.key for problem in parse_settings(settings).errors]


def only_error(settings: dict[str, str]) -> SettingProblem:
    found = parse_settings(settings)
    assert found.chain is None
    assert len(found.errors) == 1, found.errors
    return found.errors[0]


def test_without_transforms_nothing_is_looked_at() -> None:
    parsed = parse_settings({"topics": ".*", "value.converter": "com.example.AvroConverter"})

    assert parsed.chain == model.ChainSettings()
    assert parsed.problems == ()


def test_options_become_values() -> None:
    # All others are compared with Connect's classes in `tests/integration/features/transforms/test_smt_like_java.py`.
    for settings, expected in [
        (one("RegexRouter", regex="a(.*)", replacement="$1"), model.RegexRouter("a(.*)", "$1")),
        (
            one("InsertField$Key", topic_field="t", partition_field="p!", static_field="s?", static_value="x"),
            model.InsertField(
                Side.KEY,
                topic=model.InsertedField("t"),
                partition=model.InsertedField("p", optional=False),
                static=model.InsertedField("s"),
                static_value="x",
            ),
        ),
        (
            one("ReplaceField$Value", blacklist="a", whitelist="b"),
            model.ReplaceField(Side.VALUE, frozenset({"a"}), frozenset({"b"})),
        ),
        (
            one("MaskField$Value", fields="a", replace_null_with_default="FALSE"),
            model.MaskField(Side.VALUE, ("a",), replace_null_with_default=False),
        ),
    ]:
        assert the_transform(settings) == expected, settings


def test_what_connect_would_refuse_is_refused_by_its_key() -> None:
    for settings, key in [
        (one("RegexRouter", regex="(", replacement="x"), "transforms.t.regex"),
        (one("RegexRouter", regex="a", replacement="$1"), "transforms.t.replacement"),
        (one("RegexRouter", regex="a"), "transforms.t.replacement"),
        (one("TimestampRouter", timestamp_format="YYYY"), "transforms.t.timestamp.format"),
        (one("InsertField$Value"), "transforms.t.topic.field"),
        (one("InsertField$Value", offset_field="o"), "transforms.t.offset.field"),
        (one("InsertField$Value", static_field="s"), "transforms.t.static.value"),
        (one("MaskField$Value"), "transforms.t.fields"),
        (one("MaskField$Value", fields="a", replacement=""), "transforms.t.replacement"),
        (one("ReplaceField$Value", renames="a"), "transforms.t.renames"),
        (one("ReplaceField$Value", renames="a:"), "transforms.t.renames"),
        (one("HeaderFrom$Value", fields="a", headers="x,y", operation="copy"), "transforms.t.headers"),
        (one("HeaderFrom$Value", fields="a", headers="x", operation="steal"), "transforms.t.operation"),
        (one("InsertHeader", header="h", value_literal="[1]"), "transforms.t.value.literal"),
        (one("ExtractField$Value", field="`a", field_syntax_version="V2"), "transforms.t.field"),
        (one("Cast$Value", spec="a:bytes"), "transforms.t.spec"),
        (one("Cast$Value", spec="int8,a:int8"), "transforms.t.spec"),
        (one("TimestampConverter$Value", target_type="string"), "transforms.t.format"),
        (one("TimestampConverter$Value", target_type="Timestamp", format="yy-MM-dd"), "transforms.t.format"),
        (one("Filter", predicate="isOther"), "transforms.t.predicate"),
        (one("Filter", negate="true"), "transforms.t.negate"),
        (one("Filter", predicate="p", negate="maybe") | {"predicates": "p"}, "predicates.p.type"),
        (one("Filter") | {"transforms": "t,t"}, "transforms"),
    ]:
        assert key in errors(settings), key


def test_other_classes_and_converters_are_refused_with_what_to_do(subtests: pytest.Subtests) -> None:
    mask = one("MaskField$Value", fields="a")
    for settings, key, message, action in [
        *(
            ({"transforms": "t", "transforms.t.type": name}, "transforms.t.type", name, action)
            for name in ("com.example.Mine$Value", f"{PACKAGE}.SetSchemaMetadata$Value")
            for action in ("Spark SQL expression", "Python function")
        ),
        (one("MaskField", fields="a"), "transforms.t.type", "", "MaskField$Key or MaskField$Value"),
        (one("RegexRooter"), "transforms.t.type", "", f"write {PACKAGE}.RegexRouter"),
        # Fields need a converter that has fields.
        ({**mask, "value.converter": "", "key.converter": ""}, "value.converter", "", "JsonConverter"),
        ({**mask, "value.converter": TEXT, "key.converter": ""}, "value.converter", "", "JsonConverter"),
        # The default of headers cannot write a literal.
        (
            one("InsertHeader", header="h", value_literal="x") | {"header.converter": ""},
            "header.converter",
            "",
            "SimpleHeaderConverter",
        ),
        (one("Filter") | {"value.converter": AVRO}, "value.converter", AVRO, ""),
    ]:
        with subtests.test(key, action=action):
            problem = only_error(settings)
            assert problem.key == key
            assert message in problem.message
            assert action in problem.action


def test_what_may_be_meant_otherwise_is_told_of(subtests: pytest.Subtests) -> None:
    for settings, told in [
        (one("Filter"), "drops every record"),
        (one("InsertHeader", header="h", value_literal="10:30"), "is read as 10"),
        (one("MaskField$Value", fields="a"), "MM2 does not do"),
    ]:
        with subtests.test(told):
            parsed = parse_settings(settings)
            assert parsed.chain is not None
            (problem,) = (each for each in parsed.problems if told in each.message and each.warning)
            assert problem.key == "value.converter" or told != "MM2 does not do"


def test_all_problems_come_at_once() -> None:
    settings = {
        "transforms": "a,b",
        "transforms.a.type": f"{PACKAGE}.RegexRouter",
        "transforms.b.type": "com.example.Other",
        "transforms.b.predicate": "none",
    }

    assert set(errors(settings)) == {
        "transforms.a.regex",
        "transforms.a.replacement",
        "transforms.b.type",
        "transforms.b.predicate",
    }


def test_settings_that_no_transform_reads_are_warnings() -> None:
    parsed = parse_settings(one("DropHeaders", headers="a", header="b"))

    assert parsed.chain is not None
    assert next(problem.key for problem in parsed.problems if problem.warning) == "transforms.t.header"

    parsed = parse_settings({"transforms.forgotten.type": f"{PACKAGE}.Filter"})

    assert parsed.chain == model.ChainSettings()
    assert [(problem.key, problem.warning) for problem in parsed.problems] == [("transforms.forgotten.type", True)]


@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("transforms", "predicates", "predicates.t.type", "predicates.t.pattern", "value.converter"),
                *(f"transforms.t.{name}" for name in ("type", "predicate", "negate", "fields", "spec")),
                *(f"transforms.t.{name}" for name in ("regex", "replacement")),
            ]
        ),
        st.one_of(
            st.sampled_from(
                ["t", "t,t", "", *(f"{PACKAGE}.{name}" for name in ("RegexRouter", "Cast$Value", "MaskField$Key"))]
            ),
            st.text(max_size=12),
        ),
    )
)
def test_whatever_is_written_is_read_or_refused(settings: dict[str, str]) -> None:
    parsed = parse_settings(settings)

    assert (parsed.chain is None) == bool(parsed.errors)
    assert all(problem.message for problem in parsed.problems)
