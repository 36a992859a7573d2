"""The settings of transforms: their values and everything that can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.file.problems import describe
from mirror_lib.config.model import Problem, Severity
from mirror_lib.config.settings.keys_of_transforms import REGISTRY_KEYS, SUB_KEYS, is_transform_key
from mirror_lib.features.transforms.model import (
    ColumnExpressions,
    DataFormat,
    DecodeSettings,
    Decoding,
    Determinism,
    FlowTransforms,
    FunctionKind,
    FunctionReference,
    Influence,
    NonDeterminism,
    SchemaRegistry,
    Transform,
)
from mirror_lib.features.transforms.settings import parse_transforms, statement_files
from mirror_lib.topology.java_types import parse_list
from tests.support.fresh_imports import loaded_after

REGISTRY = {"mirror.transform.registry.source.url": "http://registry:8081"}


def one(name: str = "a", **settings: str) -> dict[str, str]:
    """The settings of a flow with one transform; `_` stands for `.` in names."""
    return {"mirror.transforms": name} | {
        f"mirror.transform.{name}.{key.replace('_', '.')}": text for key, text in settings.items()
    }


def good(settings: dict[str, str]) -> FlowTransforms:
    flow, problems = parse_transforms(settings)
    assert problems == ()
    return flow


def errors(settings: dict[str, str]) -> list[Problem]:
    return [each for each in parse_transforms(settings)[1] if each.severity is Severity.ERROR]


def warnings(settings: dict[str, str]) -> list[Problem]:
    _, problems = parse_transforms(settings)
    assert all(each.severity is Severity.WARNING for each in problems), problems
    return list(problems)


def test_a_transform_with_filter_and_columns_becomes_a_value() -> None:
    flow = good(
        one(
            "mask",
            topics="orders.*, payments",
            decode_value="JSON",
            schema_value="country STRING, card STRING",
            filter="value.country <> 'XX'",
            value="named_struct('country', value.country, 'card', '****')",
            topic="concat(topic, '-masked')",
        )
    )

    assert flow.transforms == (
        Transform(
            name="mask",
            topics=("orders.*", "payments"),
            decode=DecodeSettings(value=Decoding(DataFormat.JSON, "country STRING, card STRING")),
            filter="value.country <> 'XX'",
            columns=ColumnExpressions(
                value="named_struct('country', value.country, 'card', '****')", topic="concat(topic, '-masked')"
            ),
            reads=frozenset({"value", "topic"}),
        ),
    )
    assert flow.transforms[0].determinism is Determinism.YES


def test_a_select_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mask.sql"
    file.write_text("SELECT key, explode(split(value, ',')) AS value FROM records\n", encoding="utf-8")

    flow = good(one(sql_file=str(file), decode_value="string"))

    (transform,) = flow.transforms
    assert transform.select is not None
    assert transform.select.text == file.read_text()
    assert transform.select.columns == ("key", "value")
    assert transform.one_to_many
    assert flow.files == (str(file),)


def test_a_function_is_named_and_its_determinism_is_said_by_the_user() -> None:
    # Any function with one argument will do.
    flow = good(one(function="textwrap:dedent", deterministic="true"))

    (transform,) = flow.transforms
    assert transform.function == FunctionReference("textwrap", "dedent", FunctionKind.ARROW)
    assert transform.reads is None
    assert transform.determinism is Determinism.YES
    assert good(one(function="textwrap.dedent")).transforms[0].determinism is Determinism.UNKNOWN


def test_what_makes_a_result_differ_is_kept() -> None:
    (transform,) = good(one(timestamp="now()", key="concat(key, rand())")).transforms

    assert set(transform.non_determinism) == {
        NonDeterminism("now()", Influence.CLOCK),
        NonDeterminism("rand()", Influence.RANDOM),
    }
    assert transform.determinism is Determinism.NO


def test_registries_have_addresses_and_a_user_and_formats_are_read_with_them() -> None:
    flow = good(
        {
            "mirror.transform.registry.source.url": "http://one:8081/, https://two/api",
            "mirror.transform.registry.source.user": "me",
            "mirror.transform.registry.source.password": "hunter2",
            "mirror.transform.registry.target.url": "http://three:8081",
        }
    )

    assert flow.source_registry == SchemaRegistry(("http://one:8081", "https://two/api"), "me", "hunter2")
    assert flow.target_registry == SchemaRegistry(("http://three:8081",))
    assert "hunter2" not in repr(flow)

    flow = good(REGISTRY | one(decode_value="avro", decode_key="protobuf", filter="value.a = key.b"))

    assert flow.transforms[0].decode == DecodeSettings(Decoding(DataFormat.PROTOBUF), Decoding(DataFormat.AVRO))


def test_an_error_names_its_key_and_says_what_to_do(subtests: pytest.Subtests) -> None:
    for settings, key, about, advice in [
        (one(filtr="true"), "a.filtr", "unknown setting filtr", "did you mean mirror.transform.a.filter?"),
        (one(sql="x", filter="true"), "a.sql", "unknown setting sql", "did you mean mirror.transform.a.sql.file?"),
        (one(decode="json", filter="true"), "a.decode", "unknown setting decode", "decode."),
        (one(schema_vlaue="a INT", filter="true"), "a.schema.vlaue", "", "mirror.transform.a.schema.value?"),
        (one(filter=""), "a.filter", "empty", ""),
        (one(value="  "), "a.value", "empty", ""),
        (one(filter="value.country <>"), "a.filter", "operand", "value.country <>\n"),
        (one(filter="count(*) > 1"), "a.filter", "several records", ""),
        (one(topics="orders", decode_value="string"), "a.topics", "does nothing", "filter"),
        (one(filter="true", sql_file="/no/such.sql"), "a.sql.file", "cannot be combined with filter", ""),
        (one(value="key", function="textwrap:dedent"), "a.function", "cannot be combined with value", ""),
        (one(sql_file="x", function="textwrap:dedent"), "a.function", "cannot be combined with sql.file", ""),
        (one(sql_file="/no/such.sql"), "a.sql.file", "/no/such.sql cannot be read: No such file", ""),
        (one(sql_file="/"), "a.sql.file", "not a regular file", ""),
        (one(sql_file=" "), "a.sql.file", "empty", ""),
        (one(function="no_such_module:mask"), "a.function", "no Python module no_such_module", ""),
        (one(function="mask"), "a.function", "not the path of a Python", ""),
        (one(filter="true", topics="orders("), "a.topics", "Java regexes", ""),
        (one(filter="true", decode_value="jsn"), "a.decode.value", "one of json", "did you mean json?"),
        (one(filter="true", decode_value="json"), "a.decode.value", "without a schema", "schema.value"),
        (one(filter="true", decode_value="avro"), "a.decode.value", "registry", "mirror.transform.registry.source.url"),
        (one(filter="true", decode_key="json", schema_key="a b c"), "a.schema.key", "not Spark DDL", ""),
        (one(filter="true", deterministic="yes"), "a.deterministic", "true or false", ""),
        (one(filter="value.a = 1"), "a.filter", "read as binary", "mirror.transform.a.decode.value"),
        (one(filter="value.a = 1", decode_value="string"), "a.filter", "read as text", "decode.value"),
        (
            one(filter="value.contry = 'XX'", decode_value="json", schema_value="country STRING"),
            "a.filter",
            "schema.value has no field contry",
            "did you mean value.country?",
        ),
    ]:
        with subtests.test(key):
            found = [each for each in errors(settings) if each.key == f"mirror.transform.{key}"]

            assert any(about in each.message and advice in (each.suggestion or "") for each in found), errors(settings)
            for each in found:
                assert each.message.startswith(f"mirror.transform.{key}: ")
                assert each.suggestion
                assert describe(each)


def test_names_must_have_settings() -> None:
    for settings, about, advice in [
        ({"mirror.transforms": "mask"}, "the transform mask has no settings", "mirror.transform.mask.filter"),
        (one("mask", filter="true") | {"mirror.transforms": "mask, msk"}, "msk has no settings", "did you mean mask?"),
        (one("mask", filter="true") | {"mirror.transforms": "mask,mask"}, "mask is in it twice", "once"),
        ({"mirror.transforms": "registry"}, "registry is not allowed as the name", ""),
        ({"mirror.transforms": "a.b"}, "'a.b' is not a valid name", "letters"),
    ]:
        (problem,) = errors(settings)

        assert problem.key == "mirror.transforms", about
        assert about in problem.message, about
        assert advice in (problem.suggestion or ""), about


def test_keys_that_are_none_are_errors_and_it_is_known_which_are_judged_here() -> None:
    for key, advice in [
        ("mirror.transforms.mask.filter", "did you mean mirror.transform.mask.filter?"),
        ("mirror.transform.mask", "mirror.transform.<name>.filter"),
        ("mirror.transform.", "mirror.transform.<name>.filter"),
        ("mirror.transform.registry.source.urls", "did you mean mirror.transform.registry.source.url?"),
        ("mirror.transform.registry.source", "did you mean mirror.transform.registry.source"),
    ]:
        assert [(each.key, advice in (each.suggestion or "")) for each in errors({key: "true"})] == [(key, True)], key

    for key, ours in [
        ("mirror.transforms", True),
        ("mirror.transform.a.filter", True),
        ("mirror.transform.registry.source.url", True),
        ("mirror.transforms.a.filter", True),
        ("mirror.transform", False),
        ("transforms", False),
        ("mirror.schedule", False),
    ]:
        assert is_transform_key(key) is ours, key


def test_an_address_of_a_registry_is_http_without_a_user_and_a_password_needs_one() -> None:
    for url in ["registry:8081", "ftp://registry", "http://me:hunter2@registry:8081", "http://", "http://a b"]:
        (problem,) = errors({"mirror.transform.registry.source.url": url})

        assert problem.key == "mirror.transform.registry.source.url", url
        assert "hunter2" not in describe(problem), url

    (problem,) = errors(REGISTRY | {"mirror.transform.registry.source.password": "hunter2"})

    assert problem.key == "mirror.transform.registry.source.password"
    assert "hunter2" not in describe(problem)


def test_what_has_no_effect_or_may_be_meant_otherwise_is_a_warning() -> None:
    for settings, key, advice in [
        (one("mask", filter="true") | {"mirror.transform.maks.filter": "x"}, "maks.filter", "did you mean mask?"),
        ({"mirror.transform.mask.filter": "true"}, "mask.filter", "add mask to mirror.transforms"),
        (one(filter="true", schema_value="a INT"), "a.schema.value", "set decode.value=json"),
        (one(filter="true", topics=" "), "a.topics", "remove it"),
        (one(value="rand()", deterministic="true"), "a.deterministic", "remove rand()"),
        ({"mirror.transform.registry.target.user": "me"}, "registry.target.user", "registry.target.url"),
    ]:
        (problem,) = warnings(settings)

        assert problem.key == f"mirror.transform.{key}", key
        assert advice in (problem.suggestion or ""), key


def test_a_fault_is_shown_with_a_mark_or_with_the_file_and_its_line(tmp_path: Path) -> None:
    (problem,) = errors(one(filter="key = 'a' AND contry = 'XX'"))

    assert problem.message == "mirror.transform.a.filter: line 1, column 15: records have no column contry"
    assert problem.suggestion is not None
    assert problem.suggestion.endswith("\n    key = 'a' AND contry = 'XX'\n                  ^^^^^^")

    file = tmp_path / "mask.sql"
    file.write_text("SELECT key\nFROM records\nLIMIT 5\n")

    (problem,) = errors(one(sql_file=str(file)))

    assert f"{file}, line 3, column 1: LIMIT is not allowed here" in problem.message

    file = tmp_path / "mask.sql"
    file.write_bytes(b"SELECT \xff")

    (problem,) = errors(one(sql_file=str(file)))

    assert "not UTF-8 text: byte 7" in problem.message


def test_a_flow_judges_its_own_settings_and_leaves_transforms_with_errors_out() -> None:
    flow, problems = parse_transforms(
        one("bad", filter="count(*)") | one("fine", filter="true") | {"mirror.transforms": "bad, fine"}
    )

    assert [transform.name for transform in flow.transforms] == ["fine"]
    assert {each.key for each in problems} == {"mirror.transform.bad.filter"}

    settings = one("a", filter="key is not null") | {"mirror.transform.b.filter": "(", "mirror.transform.c.filter": "("}

    _, problems = parse_transforms(settings, shared={"mirror.transform.b.filter"})

    assert [each.key for each in problems] == ["mirror.transform.c.filter"]


def test_a_flow_without_transforms_does_not_load_the_sql_parser() -> None:
    code = "from mirror_lib.features.transforms.settings import parse_transforms\nparse_transforms({'topics': '.*'})"

    assert loaded_after(code, ["sqlglot"]) == []


_KEYS = st.one_of(
    st.just("mirror.transforms"),
    st.builds("mirror.transform.{}.{}".format, st.sampled_from("ab"), st.sampled_from(sorted(SUB_KEYS))),
    st.builds("mirror.transform.registry.{}".format, st.sampled_from(sorted(REGISTRY_KEYS))),
    st.text(max_size=8).map("mirror.transform.{}".format),
)
_TEXTS = st.one_of(
    st.text(),
    st.sampled_from(
        ["a", "b", "a,b", "true", "json", "avro", "key", "rand()", "a STRING", "value.a", "http://a", "os:getcwd"]
    ),
)


@given(st.dictionaries(_KEYS, _TEXTS))
def test_any_settings_end_in_transforms_or_problems_with_their_keys(settings: dict[str, str]) -> None:
    flow, problems = parse_transforms(settings)

    for each in problems:
        assert each.key is not None
        assert each.key in settings or each.key.startswith("mirror.transform")
        assert each.suggestion
    if not any(each.severity is Severity.ERROR for each in problems):
        listed = [name for name in parse_list(settings.get("mirror.transforms", "")) if name]
        assert [transform.name for transform in flow.transforms] == listed


def test_files_of_statements_are_known_from_the_folder_on(tmp_path: Path) -> None:
    assert statement_files(one(sql_file="mask.sql"), tmp_path) == (tmp_path / "mask.sql",)
    absolute = one(sql_file=str(tmp_path / "mask.sql"))
    assert statement_files(absolute, Path("/elsewhere")) == (tmp_path / "mask.sql",)
