"""MirrorMaker 1's settings as a file of this program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config import loader as load
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.model import Severity
from mirror_lib.config.settings.kafka_names import BY_CLIENT, CLIENT_SET
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.mirror_maker1 import (
    Imported,
    Listed,
    MirrorMaker1,
    Placed,
    import_mirror_maker_1,
    topic_regex,
)
from mirror_lib.features.importers.written_file import CONSUMER, PRODUCER, assignment

CONSUMER_FILE = """\
bootstrap.servers=old-1:9092,old-2:9092
group.id=mirror-maker
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.x.ScramLoginModule required username="mm" password="hush";
client.id=mm
fetch.min.bytes=65536
"""
PRODUCER_FILE = """\
bootstrap.servers=new-1:9092
acks=all
compression.type=lz4
"""


def _imported(
    consumer: str = CONSUMER_FILE,
    producer: str = PRODUCER_FILE,
    include: str = "orders.*",
    streams: int = 1,
    options: Mapping[str, str] | None = None,
) -> Imported:
    old = MirrorMaker1(
        consumer=consumer.encode("ascii"),
        producer=producer.encode("ascii"),
        include=include,
        num_streams=streams,
        options=tuple((options or {}).items()),
    )
    return import_mirror_maker_1(old, source="A", target="B")


def _assignments(imported: Imported) -> dict[str, str]:
    entries = parse_properties(imported.text.encode("ascii")).entries
    assert len({entry.key for entry in entries}) == len(entries)
    return {entry.key: entry.value for entry in entries}


def _errors(text: str, folder: Path) -> list[str]:
    path = folder / "imported.properties"
    path.write_text(text, encoding="ascii")
    return [load.describe(problem) for problem in load.check(path)]


def test_the_result_has_no_problems_and_one_enabled_flow_that_keeps_names(tmp_path: Path) -> None:
    imported = _imported(streams=3)

    assert _errors(imported.text, tmp_path) == []
    config = load.load(tmp_path / "imported.properties")
    (flow,) = config.enabled_flows
    assert str(flow.flow) == "A->B"
    assert flow.replication_policy_class.endswith(".IdentityReplicationPolicy")
    assert flow.tasks_max == 3
    assert flow.clients.data_consumer.properties["bootstrap.servers"] == "old-1:9092,old-2:9092"
    assert flow.clients.data_consumer.properties["client.id"] == "mm"
    assert flow.clients.target_admin.properties["bootstrap.servers"] == "new-1:9092"
    assert 'password="hush"' in flow.clients.source_admin.properties["sasl.jaas.config"]
    # What MirrorMaker 1 did not do is switched off.
    assert not flow.sync_topic_configs_enabled
    assert not flow.sync_topic_acls_enabled
    assert not flow.emit_checkpoints_enabled
    assert not flow.emit_offset_syncs_enabled
    assert not flow.emit_heartbeats_enabled


def test_settings_without_effect_are_comments_with_reasons() -> None:
    imported = _imported(options={"message.handler": "com.example.Rename", "abort.on.send.failure": "false"})

    listed = {(each.origin, each.name): each.reason for each in imported.listed}
    assert "mirror.fetch.max.bytes" in listed[CONSUMER, "fetch.min.bytes"]
    assert "codec" in listed[PRODUCER, "compression.type"]
    assert "mirror.topics.rename" in listed["command line", "message.handler"]
    assert "#   message.handler = com.example.Rename" in imported.text
    assert "#   compression.type = lz4" in imported.text
    assert len(imported.remarks) == 2


def test_the_group_and_the_commands_that_take_its_offsets_over_stand_in_the_file() -> None:
    imported = _imported()

    assert imported.group == "mirror-maker"
    assert "--describe --group mirror-maker" in imported.text
    assert "mirror position set --config FILE --flow 'A->B'" in imported.text
    # With a blank it is quoted, and columns count from another place.
    with_blank = _imported(CONSUMER_FILE.replace("mirror-maker", "mirror maker"))
    assert "--group 'mirror maker'" in with_blank.text
    assert "print $3, $4, $5" in with_blank.text


def test_where_a_partition_without_position_begins() -> None:
    for reset, expected in [("earliest", "earliest"), ("latest", "latest"), (None, "earliest"), ("none", "earliest")]:
        imported = _imported(CONSUMER_FILE + (f"auto.offset.reset={reset}\n" if reset else ""))

        assert _assignments(imported)["A.consumer.auto.offset.reset"] == expected, expected
        assert ("auto.offset.reset" in {each.name for each in imported.listed}) == (reset == "none"), expected


def test_the_regex_is_read_as_mirror_maker_1_read_it_or_refused(subtests: pytest.Subtests) -> None:
    for include, regex in [
        # kafka.utils.TopicFilter of Kafka 3.9: commas become |, blanks go, and so do quotes around all of it.
        ("orders", "orders"),
        ("a, b,c", "a|b|c"),
        ('"orders.*"', "orders.*"),
        ("  'a,b' ", "a|b"),
        ("(a,b)-x", "(a|b)-x"),
        (r"a\.b", r"a\.b"),
    ]:
        assert topic_regex(include) == regex, include
        assert _assignments(_imported(include=include))["A->B.topics"] == regex, include

    for include in ["", "''", "*", "a{1,3}"]:
        with subtests.test(include), pytest.raises(ConfigurationError):
            topic_regex(include)


def test_the_commit_interval_becomes_the_flush_interval_of_positions() -> None:
    in_time, wrong = (_imported(options={"offset.commit.interval.ms": text}) for text in ("5000", "no"))
    assert _assignments(in_time)["B.offset.flush.interval.ms"] == "5000"
    assert "offset.commit.interval.ms" in {each.name for each in wrong.listed}


def test_of_a_repeated_setting_the_last_counts_and_the_others_are_listed() -> None:
    imported = _imported(CONSUMER_FILE + "client.id=other\n")

    assert _assignments(imported)["A.consumer.client.id"] == "other"
    assert [(each.name, each.value) for each in imported.listed if each.name == "client.id"] == [("client.id", "mm")]


def test_a_login_from_a_jaas_file_and_kerberos_have_to_be_settled() -> None:
    imported = _imported("bootstrap.servers=a:1\ngroup.id=g\nsecurity.protocol=SASL_PLAINTEXT\n")

    assert len(imported.remarks) == 2
    assert "java.security.auth.login.config" in imported.remarks[0]
    assert "GSSAPI" in imported.remarks[1]


def test_providers_of_both_files_are_joined() -> None:
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    mine = f"config.providers=env\nconfig.providers.env.class={provider}\n"
    other = f"config.providers=env,vault\nconfig.providers.env.class=x\nconfig.providers.vault.class={provider}\n"

    imported = _imported(CONSUMER_FILE + mine, PRODUCER_FILE + other)

    found = _assignments(imported)
    assert found["config.providers"] == "env, vault"
    assert found["config.providers.env.class"] == provider
    assert found["config.providers.vault.class"] == provider
    assert [each.origin for each in imported.listed if each.name == "config.providers.env.class"] == [PRODUCER]


def test_aliases_and_files_that_cannot_be_used_are_refused(subtests: pytest.Subtests) -> None:
    for source, target in [("A", "A"), ("a b", "B"), ("A", "B->C"), ("mirror", "B"), ("", "B")]:
        with subtests.test(source), pytest.raises(ConfigurationError):
            import_mirror_maker_1(
                MirrorMaker1(b"bootstrap.servers=a:1", b"bootstrap.servers=b:1", "x"), source=source, target=target
            )

    with pytest.raises(ConfigurationError, match=r"no bootstrap\.servers"):
        _imported("zookeeper.connect=zk:2181\n")
    with pytest.raises(ConfigurationError, match="line 2"):
        _imported("bootstrap.servers=a:1\nx=\\u00zz\n")


_names = st.one_of(
    st.sampled_from(sorted(BY_CLIENT["consumer"] | BY_CLIENT["producer"])),
    st.text(st.characters(codec="utf-16", exclude_categories=["Cs"]), min_size=1, max_size=12),
)
_values = st.text(st.characters(codec="utf-16", exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(_names, _values, max_size=8), st.dictionaries(_names, _values, max_size=8))
def test_whatever_goes_in_is_placed_or_listed(consumer: dict[str, str], producer: dict[str, str]) -> None:
    given_files = {
        CONSUMER: consumer | {"bootstrap.servers": "a:1"},
        PRODUCER: producer | {"bootstrap.servers": "b:1"},
    }
    written = ["\n".join(assignment(key, value) for key, value in file.items()) for file in given_files.values()]

    imported = _imported(written[0], written[1])

    all_settings: list[Placed | Listed] = [*imported.placed, *imported.listed]
    found = {(origin, each.name): each.value for each in all_settings for origin in each.origin.split(" and ")}
    wanted = {(origin, key): value for origin, file in given_files.items() for key, value in file.items()}
    assert {key: value for key, value in found.items() if key[0] != "command line"}.keys() == wanted.keys()
    assert all(found[key] == wanted[key] for key in wanted if key[1] != "config.providers")
    assert imported.text.isascii()
    assignments = _assignments(imported)
    for each in imported.placed:
        assert assignments[each.key] == each.value


_safe_values = st.text(st.characters(codec="ascii", exclude_categories=["C"], exclude_characters="\"'#$ "), min_size=1)


#: Settings whose values are checked.
_OF_A_TYPE = {"security.protocol", "isolation.level", "request.timeout.ms", "metadata.max.age.ms"}


@given(
    st.dictionaries(
        st.sampled_from(sorted((CLIENT_SET | BY_CLIENT["consumer"]) - _OF_A_TYPE)),
        _safe_values,
    )
)
def test_the_result_never_has_errors_where_the_old_values_were_valid(
    tmp_path_factory: pytest.TempPathFactory, consumer: dict[str, str]
) -> None:
    file = "\n".join(assignment(key, value) for key, value in (consumer | {"bootstrap.servers": "a:1"}).items())
    path = tmp_path_factory.mktemp("imported") / "imported.properties"
    path.write_text(_imported(file).text, encoding="ascii")

    assert [each for each in load.check(path) if each.severity is Severity.ERROR] == []
