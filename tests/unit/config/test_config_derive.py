"""MM2's precedence, with cases in the manner of its `MirrorMakerConfigTest`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.file.derive import (
    FlowSettings,
    cluster_settings,
    clusters,
    flow_settings,
    selected_flows,
    top_level,
)
from mirror_lib.config.loader import check
from mirror_lib.config.model import Provenance
from mirror_lib.topology.names import FlowId

_FLOW = FlowId("A", "B")


def _of(settings: dict[str, str]) -> dict[str, Provenance]:
    lines = enumerate({"clusters": "A, B", **settings}.items(), start=1)
    return top_level(Provenance(value=value, key=key, line=line, origin="top level") for line, (key, value) in lines)


def _settings(settings: dict[str, str]) -> FlowSettings:
    return flow_settings(_of(settings), _FLOW)


def _client(settings: dict[str, str], name: str) -> dict[str, str]:
    return {key: setting.value for key, setting in _settings(settings).clients[name].items()}


def _flows(settings: dict[str, str]) -> list[str]:
    return [str(flow) for flow in selected_flows(_of(settings))]


def test_pairs_run_for_their_heartbeats_or_if_they_are_enabled() -> None:
    assert _flows({"clusters": "A, B, C"}) == ["A->B", "A->C", "B->A", "B->C", "C->A", "C->B"]
    assert _flows({"emit.heartbeats.enabled": "false"}) == []
    assert _flows({"emit.heartbeats.enabled": "false", "A->B.enabled": "true"}) == ["A->B"]
    assert _flows({"emit.heartbeats.enabled": "false", "B->A.emit.heartbeats.enabled": "true"}) == ["B->A"]
    assert _flows({"A->B.emit.heartbeats.enabled": "false"}) == ["B->A"]
    assert clusters(_of({"clusters": "A, B, A,, B"})) == ("A", "B")
    # Variables are replaced later.
    file = _of({"emit.heartbeats.enabled": "false"})
    file["A->B.enabled"] = Provenance(value="true", key="A->B.enabled", written="${env:X}")
    assert selected_flows(file) == ()


def test_pairs_are_selected_by_the_text_as_it_is() -> None:
    for text, runs in [("true", True), ("TRUE", True), ("true ", False), ("yes", False)]:
        assert _flows({"emit.heartbeats.enabled": "false", "A->B.enabled": text}) == (["A->B"] if runs else []), text


def test_flow_settings_win_over_the_top_level() -> None:
    settings = _settings({"tasks.max": "2", "A->B.tasks.max": "3", "topics": "a"}).connector
    assert (settings["tasks.max"].value, settings["tasks.max"].origin) == ("3", "flow A->B")
    assert (settings["topics"].value, settings["topics"].origin, settings["topics"].key) == ("a", "top level", "topics")
    assert "offset.lag.max" not in settings


def test_the_top_level_gives_names_of_connectors_and_options_of_custom_policies() -> None:
    settings = _settings(
        {"use.defaults.from": "source", "exactly.once.support": "required", "offset.flush.interval.ms": "1"}
    )
    assert not {"use.defaults.from", "exactly.once.support", "offset.flush.interval.ms"} & set(settings.connector)
    assert _settings({"A->B.use.defaults.from": "source"}).connector["use.defaults.from"].value == "source"

    settings = _settings({"replication.policy.my.option": "1", "my.option": "2", "A->B.my.option": "3"}).connector
    assert settings["replication.policy.my.option"].value == "1"
    assert settings["my.option"].value == "3"


def test_cluster_settings_seed_those_of_its_clients() -> None:
    settings = cluster_settings(
        _of({"A.ssl.key.password": "a", "A.producer.ssl.key.password": "p", "security.protocol": "SSL"}), "A"
    )
    values = {name: setting.value for name, setting in settings.items()}
    assert values == {
        "ssl.key.password": "a",
        "producer.ssl.key.password": "p",
        "consumer.ssl.key.password": "a",
        "admin.ssl.key.password": "a",
        "security.protocol": "SSL",
        "producer.security.protocol": "SSL",
        "consumer.security.protocol": "SSL",
        "admin.security.protocol": "SSL",
    }


def test_a_cluster_wins_over_the_top_level_for_its_connection() -> None:
    file = {"security.protocol": "SSL", "A.security.protocol": "PLAINTEXT", "bootstrap.servers": "x:1"}
    assert _client(file, "source_admin")["security.protocol"] == "PLAINTEXT"
    assert _client(file, "target_admin")["security.protocol"] == "SSL"
    assert _client(file, "target_admin")["bootstrap.servers"] == "x:1"


def test_consumer_settings_of_the_cluster_win_over_those_of_the_flow() -> None:
    both = {"A.consumer.fetch.min.bytes": "1", "A->B.consumer.fetch.min.bytes": "2"}
    assert _client(both, "data_consumer")["fetch.min.bytes"] == "1"
    assert _client({**both, "A->B.source.consumer.fetch.min.bytes": "3"}, "data_consumer")["fetch.min.bytes"] == "3"
    assert _client({"A->B.consumer.fetch.min.bytes": "2"}, "data_consumer")["fetch.min.bytes"] == "2"


def test_the_data_consumer_starts_early_and_never_commits() -> None:
    assert _client({"A.consumer.enable.auto.commit": "true"}, "data_consumer") == {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }
    assert _client({"A.consumer.auto.offset.reset": "latest"}, "data_consumer")["auto.offset.reset"] == "latest"


def test_the_data_producer_takes_the_targets_settings_and_the_flows_overrides() -> None:
    file = {
        "B.bootstrap.servers": "b:1",
        "B.producer.linger.ms": "1",
        "B.producer.acks": "all",
        "A->B.producer.linger.ms": "2",
        "A->B.target.producer.linger.ms": "3",
        "A->B.producer.override.acks": "1",
        "A.producer.batch.size": "4",
    }
    assert _client(file, "data_producer") == {"bootstrap.servers": "b:1", "linger.ms": "1", "acks": "1"}
    # The flow's own settings tune only the producer of offset-syncs.
    of_flow = {"A->B.producer.linger.ms": "2", "A->B.producer.override.acks": "1"}
    assert _client(of_flow, "offset_syncs_producer") == {"linger.ms": "2"}
    # Settings of MM2 do not leak into clients.
    assert _client({"admin.timeout.ms": "5", "consumer.poll.timeout.ms": "5"}, "source_admin") == {}
    assert "poll.timeout.ms" not in _client({"consumer.poll.timeout.ms": "5"}, "data_consumer")


def test_offset_syncs_clients_follow_their_location() -> None:
    file = {"A.bootstrap.servers": "a:1", "B.bootstrap.servers": "b:1", "B.producer.linger.ms": "1"}
    assert _client(file, "offset_syncs_producer") == {"bootstrap.servers": "a:1"}
    target = {**file, "offset-syncs.topic.location": "target"}
    assert _client(target, "offset_syncs_producer") == {"bootstrap.servers": "b:1", "linger.ms": "1"}
    assert _client(target, "offset_syncs_consumer")["bootstrap.servers"] == "b:1"


def test_internal_topics_use_only_the_targets_connection() -> None:
    file = {
        "B.bootstrap.servers": "b:1",
        "B.admin.request.timeout.ms": "1",
        "B.ssl.key.password": "x",
        "A->B.admin.retries": "1",
        "B.group.id": "g",
    }
    assert _client(file, "target_internal") == {"bootstrap.servers": "b:1", "ssl.key.password": "x"}
    assert _client(file, "target_admin") == {
        "bootstrap.servers": "b:1",
        "ssl.key.password": "x",
        "request.timeout.ms": "1",
        "retries": "1",
    }


def test_positions_follow_the_worker_rules() -> None:
    worker = _settings({}).worker
    assert worker["offset.storage.topic"].value == "mm2-offsets.A.internal"
    assert (worker["offset.storage.partitions"].value, worker["offset.storage.partitions"].origin) == ("25", "default")
    worker = _settings(
        {
            "offset.storage.replication.factor": "1",
            "B.offset.storage.replication.factor": "2",
            "A.offset.storage.partitions": "7",
            "A->B.offset.storage.partitions": "8",
            "B.offset.flush.interval.ms": "10",
            "offset.flush.interval.ms": "20",
        }
    ).worker
    assert worker["offset.storage.replication.factor"].value == "1"
    assert worker["offset.storage.partitions"].value == "25"
    assert (worker["offset.flush.interval.ms"].value, worker["offset.flush.interval.ms"].origin) == (
        "10",
        "worker of B",
    )


def test_old_names_count_where_the_new_one_is_absent() -> None:
    for new, old in [
        ("topics.exclude", "topics.blacklist"),
        ("groups.exclude", "groups.blacklist"),
        ("config.properties.exclude", "config.properties.blacklist"),
    ]:
        assert _settings({old: "x"}).connector[new].value == "x", new
        assert _settings({f"A->B.{old}": "x"}).connector[new].value == "x", new
        assert _settings({new: "y", f"A->B.{old}": "x"}).connector[new].value == "y", new


@given(
    st.dictionaries(
        st.sampled_from(["A->B.consumer.", "A.consumer.", "A->B.source.consumer.", "A."]).map(
            lambda prefix: prefix + "security.protocol"
        ),
        st.text(min_size=1),
    )
)
def test_the_highest_layer_wins_whatever_the_order_of_lines(values: dict[str, str]) -> None:
    order = ["A->B.source.consumer.", "A.consumer.", "A.", "A->B.consumer."]
    expected = next((values[f"{p}security.protocol"] for p in order if f"{p}security.protocol" in values), None)
    for lines in (values, dict(reversed(values.items()))):
        assert _client(lines, "data_consumer").get("security.protocol") == expected


_ALIASES = ["A", "B", "B.c", "A->B"]
_PAIRS = [f"{source}->{target}" for source in _ALIASES for target in _ALIASES if source != target]


@given(
    st.permutations(_ALIASES),
    st.dictionaries(
        st.builds(
            "{}{}".format,
            st.sampled_from(["", *(f"{pair}." for pair in _PAIRS)]),
            st.sampled_from(["enabled", "emit.heartbeats.enabled"]),
        ),
        st.sampled_from(["true", "false", "true "]),
    ),
)
def test_pairs_are_selected_as_mm2_asks_for_each(aliases: list[str], settings: dict[str, str]) -> None:
    def is_true(key: str, otherwise: str) -> bool:
        return settings.get(key, otherwise) == "true"

    # `MirrorMakerConfig.clusterPairs`
    expected = [
        f"{source}->{target}"
        for source in aliases
        for target in aliases
        if source != target
        and (
            is_true(f"{source}->{target}.enabled", "false")
            or is_true(f"{source}->{target}.emit.heartbeats.enabled", settings.get("emit.heartbeats.enabled", "true"))
        )
    ]
    assert _flows({"clusters": ", ".join(aliases), **settings}) == expected


def _calls_to_check(clusters: int, tmp_path: Path) -> int:
    """Functions called to check a file with one flow from each cluster to the first."""
    aliases = [f"c{number}" for number in range(clusters)]
    lines = [f"clusters = {', '.join(aliases)}", "emit.heartbeats.enabled = false"]
    lines += [f"{alias}.bootstrap.servers = {alias}.example.com:9092" for alias in aliases]
    lines += [f"{alias}->c0.enabled = true" for alias in aliases[1:]]
    file = tmp_path / "many.properties"
    file.write_text("\n".join(lines))
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        problems = check(file)
    finally:
        sys.setprofile(before)
    assert problems == ()
    return calls


def test_the_work_for_many_flows_grows_with_their_number_and_not_with_its_square(tmp_path: Path) -> None:
    # Caches are filled.
    _calls_to_check(5, tmp_path)
    assert _calls_to_check(400, tmp_path) < 5 * _calls_to_check(100, tmp_path)
