"""The transforms of the flows of a file: which settings count, and where problems are told."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mirror_lib.config.data_plane import UNCHANGED
from mirror_lib.config.file.stamps import are_unchanged
from mirror_lib.config.loader import InvalidConfigurationError, explain, explain_with_transforms, load
from mirror_lib.config.model import Severity, jsonable
from mirror_lib.config.secrets.masking import printable_value
from mirror_lib.features.transforms.model import Transform
from tests.support.config_files import ConfigFile

_BASE = """\
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
"""
_MASK = """\
mirror.transforms = mask
mirror.transform.mask.value = upper(cast(value as string))
"""
_ROUTER = """\
A->B.transforms = route
A->B.transforms.route.type = org.apache.kafka.connect.transforms.RegexRouter
A->B.transforms.route.regex = (.*)
A->B.transforms.route.replacement = $1-copy
"""
_CONNECT = "org.apache.kafka.connect"
_JSON = f"{_CONNECT}.json.JsonConverter"
_MASK_FIELD = f"""\
A->B.transforms = mask
A->B.transforms.mask.type = {_CONNECT}.transforms.MaskField$Value
A->B.transforms.mask.fields = card
"""
_FILTER, _TYPE = "mirror.transform.t.filter", "A->B.transforms.x.type"
_RANDOM = f"mirror.transforms = t\n{_FILTER} = rand() < 0.1\n"
_ENABLED = "B.exactly.once.source.support = enabled\n"


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path / "mirror.properties", _BASE)


def test_a_problem_has_the_key_of_the_file_its_line_and_what_is_wrong(
    file: ConfigFile, subtests: pytest.Subtests
) -> None:
    error, warning = Severity.ERROR, Severity.WARNING
    for text, severity, line, key, message in [
        ("A->B.mirror.transforms = t\n", error, 6, "A->B.mirror.transforms", "the transform t has no settings"),
        (f"A->B.mirror.transforms = t\nA->B.{_FILTER} = (\n", error, 7, f"A->B.{_FILTER}", f"A->B.{_FILTER}: "),
        # Two flows have the same setting.
        (f"A->C.enabled = true\nmirror.transforms = t\n{_FILTER} = (\n", error, 8, _FILTER, f"{_FILTER}: "),
        # No flow names the transform.
        (f"A->C.enabled = true\n{_FILTER} = key is not null\n", warning, 7, _FILTER, "does not contain t"),
        ("A.mirror.transforms = x\n", error, 6, "A.mirror.transforms", ""),
        (f"A.{_FILTER} = x\n", error, 6, f"A.{_FILTER}", ""),
        (_RANDOM, warning, 7, _FILTER, "rand() depends on chance"),
        (_RANDOM, warning, 7, _FILTER, "at least once"),
        (f"mirror.fencing = none\n{_ENABLED}{_RANDOM}", error, 6, "mirror.fencing", "transactional ids"),
        (f"A->B.transforms = x\n{_TYPE} = com.example.Mask\n", error, 7, _TYPE, "com.example.Mask"),
        # A field is not found in bytes.
        (_MASK_FIELD, error, 6, "A->B.value.converter", "ByteArrayConverter"),
        (f"value.converter = {_JSON}\n", warning, 6, "value.converter", "without transforms"),
    ]:
        with subtests.test(text):
            problem = file.one(text)
            assert (problem.severity, problem.line, problem.key) == (severity, line, key)
            assert message in problem.message


def test_what_works_is_no_problem(file: ConfigFile) -> None:
    for text in (
        "A->C.enabled = true\nA->C.mirror.transforms = t\nmirror.transform.t.filter = key is not null\n",
        f"B.exactly.once.source.support = ENABLED\n{_RANDOM}",
        # The default, written down.
        f"value.converter = {_CONNECT}.converters.ByteArrayConverter\n",
    ):
        assert file.problems(text) == [], text


class TestOwnTransforms:
    def test_settings_of_the_top_level_count_for_every_flow_and_those_of_a_flow_win(self, file: ConfigFile) -> None:
        text = "A->C.enabled = true\nmirror.transforms = t\nmirror.transform.t.filter = key is not null\n"

        flow, other = (file.flow(text + "A->C.mirror.transform.t.topics = x\n", name) for name in ("A->B", "A->C"))

        assert flow.transforms.transforms == (Transform("t", filter="key is not null", reads=frozenset({"key"})),)
        assert other.transforms.transforms[0].topics == ("x",)

    def test_without_settings_and_for_heartbeats_alone_there_are_none(self, file: ConfigFile) -> None:
        without = file.flow("")

        assert without.transforms == UNCHANGED
        assert file.flow(_MASK, "B->A").transforms == UNCHANGED
        assert file.flow(_MASK).transforms.smt is None

    def test_an_alias_that_looks_like_the_beginning_of_a_key_takes_none_of_them(self, file: ConfigFile) -> None:
        file.path.write_text("clusters = mirror, B\nbootstrap.servers = a:1\nmirror->B.enabled = true\n" + _MASK)

        assert [each.name for each in load(file.path).flow("mirror->B").transforms.transforms] == ["mask"]

    def test_files_with_statements_are_read_from_the_folder_of_the_file_and_are_sources(self, file: ConfigFile) -> None:
        statement = file.path.parent / "mask.sql"
        statement.write_text("SELECT value FROM records")
        flow = file.flow("mirror.transforms = t\nmirror.transform.t.sql.file = mask.sql\n")
        sources = load(file.path).sources

        assert [each.select.file for each in flow.transforms.transforms if each.select] == ["mask.sql"]
        assert statement in [source.path for source in sources]
        assert are_unchanged(sources)
        statement.write_text("SELECT value, key FROM records")
        assert not are_unchanged(sources)

    def test_a_statement_that_is_wrong_is_a_source_too(self, file: ConfigFile) -> None:
        statement = file.path.parent / "mask.sql"
        statement.write_text("SELECT (")
        file.write("mirror.transforms = t\nmirror.transform.t.sql.file = mask.sql\n")

        with pytest.raises(InvalidConfigurationError) as caught:
            load(file.path)

        assert statement in [source.path for source in caught.value.sources]
        assert "mask.sql, line 1" in str(caught.value)

    def test_what_providers_returned_is_not_shown(self, file: ConfigFile, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MIRROR_TEST_SECRET", "hush,(")
        text = (
            "config.providers = env\n"
            "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
            "mirror.transforms = t\n"
        )
        wrong = ("t.topics = ${env:MIRROR_TEST_SECRET}", "t.filter = '${env:MIRROR_TEST_SECRET}")
        for line in (*wrong, "t.function = ${env:MIRROR_TEST_SECRET}", "t.decode.key = ${env:MIRROR_TEST_SECRET}"):
            assert "hush" not in str(file.problems(f"{text}mirror.transform.{line}\n")), line

    def test_the_password_of_a_registry_is_a_secret(self, file: ConfigFile) -> None:
        flow = file.flow(
            _MASK
            + "mirror.transform.registry.source.url = http://registry:8081\n"
            + "mirror.transform.registry.source.user = me\n"
            + "mirror.transform.registry.source.password = hush\n",
        )

        name = "mirror.transform.registry.source.password"
        assert flow.transforms.source_registry is not None
        assert flow.transforms.source_registry.password == "hush"
        assert "hush" not in repr(flow) + str(flow) + str(jsonable(flow)) + str(jsonable(load(file.path)))
        assert "hush" not in printable_value(name, explain(file.path, "A->B")[name])

    def test_many_flows_read_a_text_once(self, file: ConfigFile, monkeypatch: pytest.MonkeyPatch) -> None:
        aliases = [f"c{number}" for number in range(30)]
        clusters = "".join(f"{alias}.bootstrap.servers = x:1\n" for alias in aliases)
        file.path.write_text(f"clusters = {','.join(aliases)}\nenabled = true\n{clusters}{_MASK}")

        flows = load(file.path).flows

        assert len(flows) == 30 * 29
        assert len({id(flow.transforms) for flow in flows}) == 1
        assert flows[0].transforms


class TestConnectTransforms:
    def test_they_become_a_chain_before_our_own_and_travel_with_the_flow(self, file: ConfigFile) -> None:
        flow = file.flow(_ROUTER + _MASK)

        assert flow.transforms.chain_of("orders").names == ("route", "mask")
        assert pickle.loads(pickle.dumps(flow)).transforms == flow.transforms

    def test_their_names_may_stand_at_the_top_level_what_belongs_to_them_may_not(self, file: ConfigFile) -> None:
        text = _ROUTER.replace("A->B.transforms = ", "transforms = ")
        assert file.flow(text).transforms.smt is not None

        problems = file.problems(_ROUTER.replace("A->B.transforms.route.type", "transforms.route.type"))

        assert [(each.severity, each.key) for each in problems] == [
            (Severity.ERROR, "A->B.transforms.route.type"),
            (Severity.NO_EFFECT, "transforms.route.type"),
        ]

    def test_what_belongs_to_a_converter_counts_where_the_converter_is_named(
        self, file: ConfigFile, subtests: pytest.Subtests
    ) -> None:
        for text, schemas in [
            # Under the flow, at the top level, or with the worker.
            ("A->B.value.converter = {json}\n", True),
            ("value.converter = {json}\n", True),
            ("B.value.converter = {json}\n", True),
            # Of the connector: only the flow's count.
            ("A->B.value.converter = {json}\nA->B.value.converter.schemas.enable = false\n", False),
            ("A->B.value.converter = {json}\nvalue.converter.schemas.enable = false\n", True),
            ("value.converter = {json}\nB.value.converter.schemas.enable = false\n", True),
            ("value.converter = {json}\nA->B.value.converter.schemas.enable = false\n", False),
            # Of the worker: the top level wins over the cluster.
            ("B.value.converter = {json}\nB.value.converter.schemas.enable = false\n", False),
            ("B.value.converter = {json}\nvalue.converter.schemas.enable = false\n", False),
            (
                "B.value.converter = {json}\nB.value.converter.schemas.enable = false\n"
                "value.converter.schemas.enable = true\n",
                True,
            ),
            ("B.value.converter = {json}\nA->B.value.converter.schemas.enable = false\n", True),
        ]:
            with subtests.test(text):
                flow = file.flow(_MASK_FIELD + text.format(json=_JSON))
                assert flow.transforms.smt is not None
                assert flow.transforms.smt.settings.value_converter.schemas_enable is schemas

    def test_what_a_converter_does_not_get_is_a_warning(self, file: ConfigFile) -> None:
        problems = file.problems(
            f"{_MASK_FIELD}A->B.value.converter = {_JSON}\nvalue.converter.schemas.enable = false\n",
        )

        (problem,) = [each for each in problems if each.line == 10]
        assert problem.severity is Severity.WARNING
        assert problem.suggestion == "write A->B.value.converter.schemas.enable"


def test_explain_has_all_that_is_set_for_transforms(file: ConfigFile) -> None:
    file.write(_MASK + _MASK_FIELD + "B.value.converter = x\nmirror.transform.mask.filter = (\n")

    explained, transforms = explain_with_transforms(file.path, "A->B")

    assert not transforms, "neither the filter nor the converter can be used"
    assert explained["mirror.transform.mask.filter"].value == "("
    assert explained["mirror.transform.mask.filter"].line == 12
    assert explained["transforms.mask.fields"].value == "card"
    assert explained["value.converter"].key == "B.value.converter"
    assert explained["predicates"].origin == "default"
