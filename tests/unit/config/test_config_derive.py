"""MM2's precedence; `tests/integration/config` compares whole files with its own classes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.file.derive import FlowSettings, clusters, flow_settings, selected_flows, top_level
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


def test_clusters_count_once_and_variables_are_replaced_after_flows_are_selected() -> None:
    assert clusters(_of({"clusters": "A, B, A,, B"})) == ("A", "B")
    file = _of({"emit.heartbeats.enabled": "false"})
    file["A->B.enabled"] = Provenance(value="true", key="A->B.enabled", written="${env:X}")
    assert selected_flows(file) == ()


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


def test_settings_of_mm2_and_of_the_data_producer_do_not_leak_into_clients() -> None:
    of_flow = {"A->B.producer.linger.ms": "2", "A->B.producer.override.acks": "1"}
    assert _client(of_flow, "offset_syncs_producer") == {"linger.ms": "2"}
    assert _client({"admin.timeout.ms": "5", "consumer.poll.timeout.ms": "5"}, "source_admin") == {}
    assert "poll.timeout.ms" not in _client({"consumer.poll.timeout.ms": "5"}, "data_consumer")


def test_internal_topics_use_only_the_targets_connection() -> None:
    file = {
        "B.bootstrap.servers": "b:1",
        "B.admin.request.timeout.ms": "1",
        "B.ssl.key.password": "x",
        "A->B.admin.retries": "1",
        "B.group.id": "g",
    }
    assert _client(file, "target_internal") == {"bootstrap.servers": "b:1", "ssl.key.password": "x"}


def test_old_names_count_where_the_new_one_is_absent() -> None:
    for new, old in [
        ("topics.exclude", "topics.blacklist"),
        ("groups.exclude", "groups.blacklist"),
        ("config.properties.exclude", "config.properties.blacklist"),
        ("mirror.failback", "mirror.way.back"),
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
        st.sampled_from(["true", "TRUE", "false", "true ", "yes"]),
    ),
)
def test_pairs_are_selected_as_mm2_asks_for_each(aliases: list[str], settings: dict[str, str]) -> None:
    def is_true(key: str, otherwise: str) -> bool:
        return settings.get(key, otherwise).lower() == "true"

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
    selected = selected_flows(_of({"clusters": ", ".join(aliases), **settings}))
    assert [str(flow) for flow in selected] == expected


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
