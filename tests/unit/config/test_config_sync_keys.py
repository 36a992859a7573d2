"""The settings about topic configs and ACLs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.loader import check, load
from mirror_lib.config.model import AclRules, ConfigRules
from mirror_lib.config.settings.sync_keys import SYNC_KEYS, acl_rules, config_rules, parse_overrides, parse_principals
from mirror_lib.topology.acls import AclPattern, AclResource

BASE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


def test_the_defaults_are_what_mm2_does() -> None:
    defaults = {definition.name: definition.default for definition in SYNC_KEYS}

    assert config_rules(defaults.get) == ConfigRules()
    assert acl_rules(defaults.get) == AclRules()


def test_a_flows_keys_reach_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "mirror.properties"
    path.write_text(
        BASE
        + "A->B.mirror.configs.override = retention.ms=1000; cleanup.policy=compact,delete\n"
        + "mirror.configs.never = segment\\\\..*, flush.ms\n"
        + "mirror.configs.always = min.insync.replicas\n"
        + "mirror.configs.default = retention.bytes\n"
        + "mirror.acls.resources = topic, group, transactional-id\n"
        + "mirror.acls.patterns = literal, prefixed\n"
        + "mirror.acls.principals = User:CN=app,O=x=User:app;User:a=User:b\n"
        + "mirror.acls.stage.writes.enabled = true\n"
        + "mirror.acls.delete.enabled = true\n"
    )

    flow = load(path).flow("A->B")

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


def test_a_wrong_value_is_one_problem_at_its_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
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
        with subtests.test(line):
            path = tmp_path / "mirror.properties"
            path.write_text(f"{BASE}{line}\n")

            problems = list(check(path))

            assert [(problem.line, problem.key) for problem in problems] == [(5, line.split(" = ")[0])]


def test_a_pair_of_principals_that_can_be_read_twice_is_refused() -> None:
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
