"""From a file to typed flows."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import pytest

from mirror_lib.config import loader
from mirror_lib.config.data_plane import UNCHANGED, FlowChains
from mirror_lib.config.file.derive import FlowSettings
from mirror_lib.config.file.typed import flow_config
from mirror_lib.config.loader import InvalidConfigurationError, explain, load, load_flow
from mirror_lib.config.model import FlowConfig, IsolationLevel, OffsetSyncsLocation, jsonable
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME, WORKER_BY_NAME
from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.names import FlowId
from tests.support.config_files import TWO_CLUSTERS, ConfigFile

_PROJECT = Path(__file__).resolve().parents[3]
#: `transforms` of Connect are a part of the field of that name; aliases are the flow's unless they are set.
_OTHERWISE_TYPED = ("enabled", "offset.storage.topic", "transforms", "source.cluster.alias", "target.cluster.alias")


def test_defaults_of_the_definitions_and_of_the_types_agree(file: ConfigFile) -> None:
    flow = file.flow("")
    for definition in (*MM2_BY_NAME.values(), *WORKER_BY_NAME.values()):
        if definition.field in FlowConfig.model_fields and definition.name not in _OTHERWISE_TYPED:
            assert definition.default is not None
            assert getattr(flow, definition.field) == definition.parse(definition.default), definition.name
            assert getattr(flow, definition.field) == FlowConfig.model_fields[definition.field].default
    assert flow.offset_storage_topic == "mm2-offsets.A.internal"


def test_flows_that_only_emit_heartbeats_are_not_enabled(file: ConfigFile) -> None:
    config = load(file.write())
    assert [str(flow.flow) for flow in config.enabled_flows] == ["A->B"]
    assert not config.flow("B->A").enabled
    assert config.flow("B->A").emit_heartbeats_enabled
    assert not config.flow("B->A").opposite_ended
    with pytest.raises(KeyError):
        config.flow("A->C")
    in_another_process = pickle.loads(pickle.dumps(config))
    assert in_another_process.flow("B->A").clients.target_admin.properties["bootstrap.servers"] == "a:9092"
    # A line that ends a flow counts for the pair in the other direction.
    ended = TWO_CLUSTERS.replace("A->B.enabled = true", "A->B.enabled = false\nemit.heartbeats.enabled = true")
    assert load(file.write(base=ended)).flow("B->A").opposite_ended
    everywhere = load(file.write(base="clusters=A,B\nbootstrap.servers=x:1\nenabled=true\n"))
    assert [str(flow.flow) for flow in everywhere.enabled_flows] == ["A->B", "B->A"]


def test_pairs_that_no_line_names_are_derived_only_when_they_are_asked_for(
    file: ConfigFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    aliases = [f"c{number}" for number in range(20)]
    addresses = "".join(f"{alias}.bootstrap.servers = {alias}:1\n" for alias in aliases)
    file.path.write_text(f"clusters = {','.join(aliases)}\n{addresses}c0->c1.enabled = true\nc2->c3.tasks.max = 4\n")
    derived: list[FlowId] = []

    def counted(settings: FlowSettings, transforms: FlowChains = UNCHANGED) -> FlowConfig:
        derived.append(settings.flow)
        return flow_config(settings, transforms)

    monkeypatch.setattr(loader, "flow_config", counted)

    config = load(file.path)

    assert [str(name) for name in derived] == ["c0->c1", "c2->c3"]
    assert len(config.unnamed) == 20 * 19 - 2
    there = config.flow("c7->c9")
    assert str(derived[-1]) == "c7->c9"
    assert there.clients.target_admin.properties["bootstrap.servers"] == "c9:1"


def test_a_pair_is_derived_alike_whether_a_line_names_it_or_not(file: ConfigFile) -> None:
    clusters = TWO_CLUSTERS.replace("A, B", "A, B, C") + "C.bootstrap.servers = c:9092\n"
    changes = ("", "emit.heartbeats.interval.seconds = 7\n", "topics.blacklist = x\n")
    others = ("", "B.producer.linger.ms = 5\n", "C.offset.storage.topic = positions\n")
    for name, change, other in product(("B->A", "A->C", "C->A", "B->C", "C->B"), changes, others):
        unnamed = load(file.write(change + other, clusters))
        named = load(file.write(f"{change}{other}{name}.tasks.max = 1\n", clusters))
        assert FlowId.parse(name) in unnamed.unnamed.names, (name, change, other)
        assert FlowId.parse(name) not in named.unnamed.names, (name, change, other)
        assert unnamed.flow(name) == named.flow(name), (name, change, other)


def test_values_of_a_cluster_count_though_no_line_names_its_pairs_unless_they_are_overridden(
    file: ConfigFile, subtests: pytest.Subtests
) -> None:
    for line in ["A.security.protocol = NONE\n", "B.producer.max.request.size = many\n"]:
        with subtests.test(line):
            file.path.write_text(TWO_CLUSTERS.replace("A->B.enabled = true\n", "") + line)
            with pytest.raises(InvalidConfigurationError) as caught:
                load(file.path)
            assert caught.value.keys_in_error == {line.split(" ", 1)[0]}

    security = "A.security.protocol = PLAINTEXT\nB.security.protocol = PLAINTEXT\n"
    top = "security.protocol = NONE\nC.bootstrap.servers = c:1\n"
    file.path.write_text(TWO_CLUSTERS.replace("A, B", "A, B, C") + top + security)
    with pytest.raises(InvalidConfigurationError):
        load(file.path)
    file.path.write_text(TWO_CLUSTERS.replace("A, B", "A, B, C") + top + security + "C.security.protocol = PLAINTEXT\n")
    assert any("overrides it" in each.message for each in load(file.path).warnings)


def test_a_flow_that_cannot_run_is_refused_with_those_that_can(file: ConfigFile, subtests: pytest.Subtests) -> None:
    for wanted, what in [("A->C", "no flow 'A->C'"), ("A", "no flow 'A'"), ("B->A", "flow B->A of .* is not enabled")]:
        with subtests.test(wanted):
            file.write()
            with pytest.raises(ConfigurationError, match=what) as caught:
                load_flow(file.path, wanted)
            assert "enabled flows are: A->B" in caught.value.action


def test_requests_are_as_large_as_the_data_producer_may_make_them_in_java(
    file: ConfigFile, subtests: pytest.Subtests
) -> None:
    for lines, expected in [
        ("", None),
        ("B.producer.max.request.size = 400000\n", 400_000),
        ("B.producer.max.request.size = 400000\nA->B.producer.override.max.request.size = 300000\n", 300_000),
        # These reach the producer of offset-syncs only, in MM2 too.
        ("A.producer.max.request.size = 400000\nA->B.producer.max.request.size = 400000\n", None),
    ]:
        assert file.flow(lines).copy_settings.request_max_bytes == expected, lines

    for size in ["0", "-1", "1 MB", "4294967296"]:
        with (
            subtests.test(size),
            pytest.raises(InvalidConfigurationError, match=r"max\.request\.size must be a whole number"),
        ):
            file.flow(f"B.producer.max.request.size = {size}\n")


def test_settings_of_several_kinds_are_typed(file: ConfigFile) -> None:
    flow = file.flow(
        "offset-syncs.topic.location = target\n"
        "A.consumer.isolation.level = READ_COMMITTED\n"
        "mirror.schedule = */5  * * * *\n"
        "B.offset.flush.interval.ms = 1000\n",
    )
    assert flow.offset_syncs_topic_location is OffsetSyncsLocation.TARGET
    assert flow.isolation_level is IsolationLevel.READ_COMMITTED
    assert flow.schedule == "*/5 * * * *"
    assert flow.offset_flush_interval_ms == 1000
    assert flow.clients.offset_syncs_producer.cluster == "B"


def test_policies_read_their_settings_untrimmed(file: ConfigFile) -> None:
    flow = file.flow(
        "replication.policy.separator = _ \n"
        "replication.policy.internal.topic.separator.enabled = true \n"
        "replication.policy.my.option = 1\n",
    )
    assert flow.replication_policy_separator == "_ "
    assert flow.replication_policy_internal_topic_separator_enabled is False
    assert flow.replication_policy_options["replication.policy.my.option"] == "1"


def test_variables_are_replaced(file: ConfigFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRROR_TEST_PASSWORD", "hush")
    flow = file.flow(
        "config.providers = env\n"
        "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "A.ssl.truststore.password = ${env:MIRROR_TEST_PASSWORD}\n"
        "mirror.ledger.url = postgresql+psycopg://me:hush@host/db\n",
    )
    config = load(file.path)
    assert flow.clients.source_admin.properties["ssl.truststore.password"] == "hush"
    assert config.ledger_url == "postgresql+psycopg://me:hush@host/db"
    assert "hush" not in repr(config) + str(jsonable(config))
    setting = explain(file.path, "A->B")["source-admin/ssl.truststore.password"]
    assert setting.written == "${env:MIRROR_TEST_PASSWORD}"


def test_a_file_with_errors_raises_one_error_with_everything_and_warnings_stop_nothing(
    file: ConfigFile, tmp_path: Path
) -> None:
    config = load(file.write("topics.blacklist = x\n"))
    assert config.flow("A->B").topics_exclude == ("x",)
    assert [problem.line for problem in config.warnings] == [5]

    file.write("tasks.max = 0\ntopcs = x\ntopics.blacklist = y\n")
    with pytest.raises(InvalidConfigurationError) as caught:
        load(file.path)
    error = caught.value
    assert [problem.line for problem in error.problems] == [5, 6, 7]
    assert error.exit_code == 2
    text = str(error)
    assert str(file.path) in text
    assert "line 5" in text
    assert "did you mean topics?" in text
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems, again.attributes()) == (text, error.problems, error.attributes())

    with pytest.raises(InvalidConfigurationError, match="cannot be read"):
        load(tmp_path / "none")
    with pytest.raises(InvalidConfigurationError):
        load(tmp_path)


def test_explain_names_origin_and_line(file: ConfigFile) -> None:
    file.write("A->B.tasks.max = 2\nA.consumer.fetch.min.bytes = 5\noffset.storage.partitions = 5\n")
    settings = explain(file.path, "A->B")
    found = {name: (s.value, s.origin, s.line, s.key) for name, s in settings.items()}
    assert found["tasks.max"] == ("2", "flow A->B", 5, "A->B.tasks.max")
    assert found["topics"] == (".*", "default", None, None)
    assert found["data-consumer/fetch.min.bytes"] == ("5", "cluster A", 6, "A.consumer.fetch.min.bytes")
    assert found["offset.storage.partitions"] == ("5", "top level", 7, "offset.storage.partitions")
    assert found["mirror.produce.max.in.flight"][1] == "default"
    with pytest.raises(ConfigurationError, match="A->C"):
        explain(file.path, "A->C")


def test_the_example_file_has_nothing_to_complain_about() -> None:
    config = load(_PROJECT / "examples" / "mirror.properties")
    assert config.warnings == ()
    assert [str(flow.flow) for flow in config.enabled_flows] == ["primary->backup"]
    flow = config.flow("primary->backup")
    assert flow.topics_exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert flow.schedule == "5m"
