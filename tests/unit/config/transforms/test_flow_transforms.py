"""The transforms of the flows of a file: which settings count, and where problems are told."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mirror_lib.config.file.stamps import are_unchanged
from mirror_lib.config.loader import InvalidConfigurationError, check, explain, explain_with_transforms, load
from mirror_lib.config.model import FlowConfig, Problem, Severity, jsonable
from mirror_lib.config.secrets.masking import printable_value
from mirror_lib.transform.model import NO_TRANSFORMS, Transform

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
_MASK_FIELD = f"""\
A->B.transforms = mask
A->B.transforms.mask.type = {_CONNECT}.transforms.MaskField$Value
A->B.transforms.mask.fields = card
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mirror.properties"


def _flow(file: Path, text: str, name: str = "A->B") -> FlowConfig:
    file.write_text(_BASE + text)
    return load(file).flow(name)


def _problems(file: Path, text: str) -> list[Problem]:
    file.write_text(_BASE + text)
    return list(check(file))


def _one(file: Path, text: str) -> Problem:
    (problem,) = _problems(file, text)
    return problem


class TestOwnTransforms:
    def test_a_flow_without_settings_has_none(self, file: Path) -> None:
        flow = _flow(file, "")

        assert flow.transforms == NO_TRANSFORMS
        assert not flow.transforms

    def test_settings_of_the_top_level_count_for_every_flow_and_those_of_a_flow_win(self, file: Path) -> None:
        text = "A->C.enabled = true\nmirror.transforms = t\nmirror.transform.t.filter = key is not null\n"

        flow, other = (_flow(file, text + "A->C.mirror.transform.t.topics = x\n", name) for name in ("A->B", "A->C"))

        assert flow.transforms.transforms == (Transform("t", filter="key is not null", reads=frozenset({"key"})),)
        assert other.transforms.transforms[0].topics == ("x",)

    def test_flows_that_only_emit_heartbeats_have_none(self, file: Path) -> None:
        assert _flow(file, _MASK, "B->A").transforms == NO_TRANSFORMS

    def test_a_flow_travels_with_its_transforms(self, file: Path) -> None:
        flow = _flow(file, _MASK + _ROUTER)

        assert pickle.loads(pickle.dumps(flow)).transforms == flow.transforms

    def test_an_expression_that_cannot_be_parsed_is_an_error_at_its_line_with_its_place(self, file: Path) -> None:
        problem = _one(file, "mirror.transforms = t\nmirror.transform.t.filter = upper(key\n")

        assert (problem.severity, problem.key, problem.line) == (Severity.ERROR, "mirror.transform.t.filter", 7)
        assert problem.message.startswith("mirror.transform.t.filter: line 1, column 6: ")
        assert "^" in (problem.suggestion or "")

    def test_a_problem_names_the_key_as_the_file_has_it(self, file: Path) -> None:
        problem = _one(file, "A->B.mirror.transforms = t\nA->B.mirror.transform.t.filter = (\n")

        assert (problem.key, problem.line) == ("A->B.mirror.transform.t.filter", 7)
        assert problem.message.startswith("A->B.mirror.transform.t.filter: ")

    def test_what_is_missing_is_told_at_the_line_that_asks_for_it(self, file: Path) -> None:
        problem = _one(file, "A->B.mirror.transforms = t\n")

        assert (problem.severity, problem.line) == (Severity.ERROR, 6)
        assert "the transform t has no settings" in problem.message

    def test_flows_with_the_same_wrong_setting_tell_it_once(self, file: Path) -> None:
        text = "A->C.enabled = true\nmirror.transforms = t\nmirror.transform.t.filter = (\n"

        assert len(_problems(file, text)) == 1

    def test_a_transform_for_one_of_several_flows_is_no_problem_of_the_others(self, file: Path) -> None:
        text = "A->C.enabled = true\nA->C.mirror.transforms = t\nmirror.transform.t.filter = key is not null\n"

        assert _problems(file, text) == []

    def test_a_transform_of_the_top_level_that_no_flow_names_is_a_warning(self, file: Path) -> None:
        problem = _one(file, "A->C.enabled = true\nmirror.transform.t.filter = key is not null\n")

        assert (problem.severity, problem.line) == (Severity.WARNING, 7)
        assert "does not contain t" in problem.message

    def test_they_do_not_stand_under_a_cluster(self, file: Path) -> None:
        for key in ["A.mirror.transforms", "A.mirror.transform.t.filter"]:
            problem = _one(file, f"{key} = x\n")

            assert (problem.severity, problem.key) == (Severity.ERROR, key), key

    def test_an_alias_that_looks_like_the_beginning_of_a_key_takes_none_of_them(self, file: Path) -> None:
        file.write_text("clusters = mirror, B\nbootstrap.servers = a:1\nmirror->B.enabled = true\n" + _MASK)

        assert [each.name for each in load(file).flow("mirror->B").transforms.transforms] == ["mask"]

    def test_a_result_by_chance_is_a_warning(self, file: Path) -> None:
        problem = _one(file, "mirror.transforms = t\nmirror.transform.t.filter = rand() < 0.1\n")

        assert (problem.severity, problem.line) == (Severity.WARNING, 7)
        assert "rand() depends on chance" in problem.message
        assert "at least once" in problem.message

    def test_a_result_by_chance_is_none_where_it_is_written_in_transactions(self, file: Path) -> None:
        chance = "mirror.transforms = t\nmirror.transform.t.filter = rand() < 0.1\n"
        flow = _flow(file, f"B.exactly.once.source.support = ENABLED\n{chance}")

        assert flow.transactions
        assert load(file).warnings == ()

    def test_transactions_without_ids_are_refused(self, file: Path) -> None:
        chance = "mirror.transforms = t\nmirror.transform.t.filter = rand() < 0.1\n"
        enabled = "B.exactly.once.source.support = enabled\nmirror.fencing = none\n"

        problem = _one(file, f"{enabled}{chance}")

        assert (problem.severity, problem.key) == (Severity.ERROR, "mirror.fencing")
        assert "transactional ids" in problem.message

    def test_files_with_statements_are_read_from_the_folder_of_the_file_and_are_sources(self, file: Path) -> None:
        statement = file.parent / "mask.sql"
        statement.write_text("SELECT value FROM records")
        flow = _flow(file, "mirror.transforms = t\nmirror.transform.t.sql.file = mask.sql\n")
        sources = load(file).sources

        assert [each.select.file for each in flow.transforms.transforms if each.select] == ["mask.sql"]
        assert statement in [source.path for source in sources]
        assert are_unchanged(sources)
        statement.write_text("SELECT value, key FROM records")
        assert not are_unchanged(sources)

    def test_a_statement_that_is_wrong_is_a_source_too(self, file: Path) -> None:
        statement = file.parent / "mask.sql"
        statement.write_text("SELECT (")
        file.write_text(_BASE + "mirror.transforms = t\nmirror.transform.t.sql.file = mask.sql\n")

        with pytest.raises(InvalidConfigurationError) as caught:
            load(file)

        assert statement in [source.path for source in caught.value.sources]
        assert "mask.sql, line 1" in str(caught.value)

    def test_what_providers_returned_is_not_shown(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MIRROR_TEST_SECRET", "hush,(")
        text = (
            "config.providers = env\n"
            "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
            "mirror.transforms = t\n"
        )
        wrong = ("t.topics = ${env:MIRROR_TEST_SECRET}", "t.filter = '${env:MIRROR_TEST_SECRET}")
        for line in (*wrong, "t.function = ${env:MIRROR_TEST_SECRET}", "t.decode.key = ${env:MIRROR_TEST_SECRET}"):
            assert "hush" not in str(_problems(file, f"{text}mirror.transform.{line}\n")), line

    def test_the_password_of_a_registry_is_a_secret(self, file: Path) -> None:
        flow = _flow(
            file,
            _MASK
            + "mirror.transform.registry.source.url = http://registry:8081\n"
            + "mirror.transform.registry.source.user = me\n"
            + "mirror.transform.registry.source.password = hush\n",
        )

        name = "mirror.transform.registry.source.password"
        assert flow.transforms.source_registry is not None
        assert flow.transforms.source_registry.password == "hush"
        assert "hush" not in repr(flow) + str(flow) + str(jsonable(flow)) + str(jsonable(load(file)))
        assert "hush" not in printable_value(name, explain(file, "A->B")[name])

    def test_many_flows_read_a_text_once(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        aliases = [f"c{number}" for number in range(30)]
        clusters = "".join(f"{alias}.bootstrap.servers = x:1\n" for alias in aliases)
        file.write_text(f"clusters = {','.join(aliases)}\nenabled = true\n{clusters}{_MASK}")

        flows = load(file).flows

        assert len(flows) == 30 * 29
        assert len({id(flow.transforms) for flow in flows}) == 1
        assert flows[0].transforms


class TestConnectTransforms:
    def test_they_become_a_chain_before_our_own(self, file: Path) -> None:
        flow = _flow(file, _ROUTER + _MASK)

        assert flow.transforms.chain_of("orders").names == ("route", "mask")

    def test_without_any_there_is_no_chain(self, file: Path) -> None:
        assert _flow(file, _MASK).transforms.smt is None

    def test_their_names_may_stand_at_the_top_level_what_belongs_to_them_may_not(self, file: Path) -> None:
        text = _ROUTER.replace("A->B.transforms = ", "transforms = ")
        assert _flow(file, text).transforms.smt is not None

        problems = _problems(file, _ROUTER.replace("A->B.transforms.route.type", "transforms.route.type"))

        assert [(each.severity, each.key) for each in problems] == [
            (Severity.ERROR, "A->B.transforms.route.type"),
            (Severity.NO_EFFECT, "transforms.route.type"),
        ]

    def test_one_that_is_not_known_is_refused_by_name(self, file: Path) -> None:
        problem = _one(file, "A->B.transforms = x\nA->B.transforms.x.type = com.example.Mask\n")

        assert (problem.severity, problem.key, problem.line) == (Severity.ERROR, "A->B.transforms.x.type", 7)
        assert "com.example.Mask" in problem.message

    def test_a_field_is_not_found_in_bytes(self, file: Path) -> None:
        problem = _one(file, _MASK_FIELD)

        assert (problem.severity, problem.key, problem.line) == (Severity.ERROR, "A->B.value.converter", 6)
        assert "ByteArrayConverter" in problem.message

    def test_a_converter_may_stand_under_the_flow_at_the_top_level_or_with_the_worker(self, file: Path) -> None:
        for before in ["A->B.", "", "B."]:
            flow = _flow(file, _MASK_FIELD + f"{before}value.converter = {_CONNECT}.json.JsonConverter\n")

            assert flow.transforms.smt is not None, before
            assert flow.transforms.smt.settings.value_converter.schemas_enable, before

    def test_what_belongs_to_a_converter_counts_where_the_converter_is_named(self, file: Path) -> None:
        for text, schemas in [
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
            flow = _flow(file, _MASK_FIELD + text.format(json=f"{_CONNECT}.json.JsonConverter"))

            assert flow.transforms.smt is not None, text
            assert flow.transforms.smt.settings.value_converter.schemas_enable is schemas, text

    def test_what_a_converter_does_not_get_is_a_warning(self, file: Path) -> None:
        problems = _problems(
            file,
            _MASK_FIELD
            + f"A->B.value.converter = {_CONNECT}.json.JsonConverter\n"
            + "value.converter.schemas.enable = false\n",
        )

        (problem,) = [each for each in problems if each.line == 10]
        assert problem.severity is Severity.WARNING
        assert problem.suggestion == "write A->B.value.converter.schemas.enable"

    def test_a_converter_without_transforms_changes_nothing(self, file: Path) -> None:
        problem = _one(file, f"value.converter = {_CONNECT}.json.JsonConverter\n")
        assert (problem.severity, problem.line) == (Severity.WARNING, 6)
        assert "without transforms" in problem.message

    def test_the_default_converter_may_be_written_down(self, file: Path) -> None:
        assert _problems(file, f"value.converter = {_CONNECT}.converters.ByteArrayConverter\n") == []


def test_explain_has_all_that_is_set_for_transforms(file: Path) -> None:
    file.write_text(_BASE + _MASK + _MASK_FIELD + "B.value.converter = x\nmirror.transform.mask.filter = (\n")

    explained, transforms = explain_with_transforms(file, "A->B")

    assert not transforms, "neither the filter nor the converter can be used"
    assert explained["mirror.transform.mask.filter"].value == "("
    assert explained["mirror.transform.mask.filter"].line == 12
    assert explained["transforms.mask.fields"].value == "card"
    assert explained["value.converter"].key == "B.value.converter"
    assert explained["predicates"].origin == "default"
