"""Our own keys: their definitions, the settings that they become, and the reference of all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.copy_settings import CopySettings, PoisonPolicy
from mirror_lib.config.loader import load
from mirror_lib.config.model import AclRules, ConfigRules, FlowConfig, Rename
from mirror_lib.config.settings.mirror_keys import FLOW_KEYS, OWN_BY_NAME, own_values
from mirror_lib.config.settings.rename_keys import parse_rename_list
from mirror_lib.config.settings.sync_keys import parse_overrides, parse_principals
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.lint.reference import all_definitions, markdown_reference
from mirror_lib.topology.acls import AclPattern, AclResource
from tests.support.config_files import ConfigFile
from tests.support.fresh_imports import loaded_after


def test_keys_of_our_own_have_a_prefix_and_the_defaults_of_the_settings() -> None:
    values = own_values(lambda name: OWN_BY_NAME[name].default)
    assert {name: each.default for name, each in FlowConfig.model_fields.items() if name in values} | {
        "copy_settings": CopySettings(),
        "rename": Rename(),
        "config_rules": ConfigRules(),
        "acl_rules": AclRules(),
    } == values

    assert all(definition.name.startswith("mirror.") for definition in FLOW_KEYS)


def test_copy_settings_are_typed_and_limited() -> None:
    values = {"mirror.produce.max.in.flight": "5", "mirror.run.max.seconds": "1.5", "mirror.poison.policy": "skip"}
    assert own_values(values.get, CopySettings) == {
        "produce_max_in_flight": 5,
        "run_max_seconds": 1.5,
        "poison_policy": PoisonPolicy.SKIP,
    }
    for text in ("0", "6", "x"):
        with pytest.raises(ValueError):
            OWN_BY_NAME["mirror.produce.max.in.flight"].parse(text)


def test_renames_are_read_or_refused(subtests: pytest.Subtests) -> None:
    values = {
        "mirror.topics.rename": "orders:sales, old:new",
        "mirror.topics.rename.regex": " (.*)-v1 ",
        "mirror.topics.rename.replacement": "$1",
        "mirror.topics.merge.enabled": "TRUE",
    }
    assert Rename(**own_values(values.get, Rename)) == Rename(
        explicit={"orders": "sales", "old": "new"}, pattern="(.*)-v1", replacement="$1", merge=True
    )

    for text in ["a", "a:", ":b", "a:b:c", "a:b,a:c"]:
        with subtests.test(text), pytest.raises(ValueError):
            parse_rename_list(text)


def test_a_flows_keys_reach_its_settings(file: ConfigFile) -> None:
    flow = file.flow(
        "A->B.mirror.configs.override = retention.ms=1000; cleanup.policy=compact,delete\n"
        "mirror.configs.never = segment\\\\..*, flush.ms\n"
        "mirror.configs.always = min.insync.replicas\n"
        "mirror.configs.default = retention.bytes\n"
        "mirror.acls.resources = topic, group, transactional-id\n"
        "mirror.acls.patterns = literal, prefixed\n"
        "mirror.acls.principals = User:CN=app,O=x=User:app;User:a=User:b\n"
        "mirror.acls.stage.writes.enabled = true\n"
        "mirror.acls.delete.enabled = true\n"
    )

    assert flow.config_rules == ConfigRules(
        override={"retention.ms": "1000", "cleanup.policy": "compact,delete"},
        never=(r"segment\..*", "flush.ms"),
        always=("min.insync.replicas",),
        default=("retention.bytes",),
    )
    assert flow.acl_rules == AclRules(
        resources=tuple(AclResource),
        patterns=tuple(AclPattern),
        principals={"User:CN=app,O=x": "User:app", "User:a": "User:b"},
        stage_writes=True,
        delete=True,
    )


def test_a_wrong_value_is_one_problem_at_its_line(file: ConfigFile) -> None:
    for line in [
        "mirror.configs.never = (",
        "mirror.configs.override = retention.ms",
        "mirror.configs.override = =5",
        "mirror.configs.override = a=1;a=2",
        "mirror.acls.resources = topic, cluster",
        "mirror.acls.patterns = match",
        "mirror.acls.principals = a=b",
        "mirror.acls.principals = User:a",
        "mirror.acls.principals = User:a=User:b;User:a=User:c",
        "mirror.acls.stage.writes.enabled = yes",
    ]:
        problem = file.one(f"{line}\n")
        assert (problem.line, problem.key) == (5, line.split(" = ")[0])
    with pytest.raises(ValueError, match="is ambiguous"):
        parse_principals("User:CN=a=User:b=User:c")


VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=";"), min_size=1)
NAMES = st.text(st.sampled_from("abc."), min_size=1)


@given(st.dictionaries(NAMES, VALUES))
def test_overrides_come_back_as_they_were_written(values: dict[str, str]) -> None:
    assert parse_overrides(";".join(f"{name}={value}" for name, value in values.items())) == values


DISTINGUISHED = st.lists(
    st.tuples(st.sampled_from(["CN", "O", "OU"]), st.text(st.sampled_from("abc "), min_size=1)), min_size=1
).map(lambda parts: "User:" + ",".join(f"{key}={value.strip() or 'x'}" for key, value in parts))


@given(st.dictionaries(DISTINGUISHED, DISTINGUISHED))
def test_distinguished_names_come_back_as_they_were_written(names: dict[str, str]) -> None:
    assert parse_principals(" ; ".join(f"{old}={new}" for old, new in names.items())) == names


BACK = "B->A.enabled = true\n"


def test_a_limit_of_one_flow_wins_over_that_of_all_and_without_any_nothing_is_limited(file: ConfigFile) -> None:
    unlimited = file.flow()
    config = load(file.write(f"{BACK}mirror.rate.limit.bytes = 1000\nA->B.mirror.rate.limit.bytes = 5000000000\n"))

    assert unlimited.copy_settings.rate_limit_bytes == 0
    assert (unlimited.source_rate_limit_read_bytes, unlimited.target_rate_limit_write_bytes) == (0, 0)
    assert config.flow("A->B").copy_settings.rate_limit_bytes == 5_000_000_000
    assert config.flow("B->A").copy_settings.rate_limit_bytes == 1000


def test_a_limit_that_stands_in_the_wrong_place_or_is_none_is_an_error(file: ConfigFile) -> None:
    for line, told in [
        ("mirror.rate.limit.read.bytes = 10", "belongs to a cluster"),
        ("A->B.mirror.rate.limit.write.bytes = 10", "belongs to a cluster, not to a flow"),
        ("A.mirror.rate.limit.bytes = 10", "is not allowed under a cluster"),
        ("A.mirror.rate.limit.read.bytes = -1", "at least 0"),
        ("A.mirror.rate.limit.read.bytes = fast", "must be"),
        ("A.mirror.rate.limit.reed.bytes = 10", "is not a setting"),
    ]:
        with pytest.raises(ConfigurationError, match=r"rate\.limit") as raised:
            load(file.write(line))
        assert told in str(raised.value), line


_DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"


def test_the_document_is_up_to_date() -> None:
    command = "mirror config keys --markdown > docs/configuration.md"
    assert _DOCUMENT.read_text(encoding="utf-8") == markdown_reference(), f"run {command}"


def test_names_are_unique_and_defaults_are_valid() -> None:
    definitions = all_definitions()
    assert len({definition.name for definition in definitions}) == len(definitions)
    for definition in definitions:
        if definition.default is not None:
            definition.parse(definition.default)


def test_a_file_with_settings_of_the_core_alone_lists_no_features(file: ConfigFile) -> None:
    path = file.write("mirror.ledger.url = sqlite:///l.sqlite3\nmirror.schedule = 5m\nA->B.topics = orders\n")
    # Reading the manifests of features would load this one.
    manifest = "mirror_lib.features.watch.manifest"
    assert loaded_after(f"from mirror_lib.config.loader import load\nload({str(path)!r})", [manifest]) == []
    path.write_text(path.read_text() + "mirror.schedule.poll = 3s\n")
    assert loaded_after(f"from mirror_lib.config.loader import load\nload({str(path)!r})", [manifest]) == [manifest]
