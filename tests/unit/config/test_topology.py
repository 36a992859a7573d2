"""From a flow's configuration to its rules about topics."""

from __future__ import annotations

from typing import Any

import pytest

from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig, MirrorConfig, Rename
from mirror_lib.config.topology import config_property_filter, flow_topology, loops, rename_rules, replication_policy
from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.names import FlowId

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def flow(**settings: Any) -> FlowConfig:
    client = ClientSettings(cluster="A", role="any", properties={"bootstrap.servers": "localhost:9092"})
    clients = FlowClients.model_construct(**dict.fromkeys(FlowClients.model_fields, client))
    return FlowConfig(flow=FlowId("A", "B"), clients=clients, **settings)


def test_a_run_can_be_limited_to_some_of_the_topics_and_a_flow_leave_heartbeats_out() -> None:
    limited = flow_topology(flow(topics=("orders.*",)), ["orders", "payments"])

    assert limited.replicates("orders")
    assert not limited.replicates("orders-old")
    assert not limited.replicates("payments")
    assert flow_topology(flow(topics=("x",))).replicates("heartbeats")
    assert not flow_topology(flow(topics=("x",), heartbeats_replication_enabled=False)).replicates("heartbeats")


def test_separator_options_and_source_reach_the_policy() -> None:
    underscored = flow(replication_policy_separator="_")
    dotted = flow(replication_policy_separator="_", replication_policy_internal_topic_separator_enabled=False)

    assert replication_policy(underscored).format_remote_topic("A", "t") == "A_t"
    assert replication_policy(underscored).offset_syncs_topic("B") == "mm2-offset-syncs_B_internal"
    assert replication_policy(dotted).offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    of_file = replication_policy(flow(replication_policy_options={"replication.policy.separator": "-"}))
    assert of_file.format_remote_topic("A", "t") == "A-t"
    assert replication_policy(flow(replication_policy_class=IDENTITY)).topic_source("orders") == "A"


def test_topic_configs_have_mm2s_exclusions_by_default() -> None:
    assert not config_property_filter(flow()).should_replicate_config_property("min.insync.replicas")
    assert config_property_filter(flow()).should_replicate_config_property("retention.ms")
    assert not config_property_filter(flow()).should_replicate_source_default("retention.ms")
    assert config_property_filter(flow(use_defaults_from="source")).should_replicate_source_default("retention.ms")


def test_renames_are_taken_over() -> None:
    settings = flow(rename=Rename(explicit={"a": "b"}, pattern="x(.)", replacement="y$1", merge=True))

    topology = flow_topology(settings)

    assert [topology.remote_topic(topic) for topic in ("a", "x1", "c")] == ["b", "y1", "A.c"]
    assert topology.rename.merge


def test_wrong_settings_are_configuration_errors_of_the_flow(subtests: pytest.Subtests) -> None:
    for make, settings, says in [
        (rename_rules, {"rename": Rename(pattern="(a", replacement="b")}, "without a closing one"),
        (rename_rules, {"rename": Rename(pattern="a", replacement="$1")}, "refers to group 1"),
        (rename_rules, {"rename": Rename(pattern="a")}, "needs both"),
        (rename_rules, {"rename": Rename(explicit={"orders": "no blanks"})}, "no blanks"),
        (flow_topology, {"topics": ("(a",)}, None),
        (flow_topology, {"replication_policy_class": "com.example.Policy"}, None),
    ]:
        with subtests.test(settings=settings):
            with pytest.raises(ConfigurationError, match=says) as caught:
                make(flow(**settings))
            assert caught.value.where.flow == "A->B"


def test_flows_with_one_name_for_both_directions_run_in_a_loop_when_both_are_enabled() -> None:
    there = flow(enabled=True, replication_policy_class=IDENTITY)
    back = there.model_copy(update={"flow": FlowId("B", "A")})
    idle = back.model_copy(update={"enabled": False})

    both = MirrorConfig(path="mirror.properties", clusters=("A", "B"), flows=(there, back))
    one = MirrorConfig(path="mirror.properties", clusters=("A", "B"), flows=(there, idle))

    assert [str(loop) for loop in loops(both, "A", ["orders"])] == ["orders on A -> orders on B -> orders on A"]
    assert loops(one, "A", ["orders"]) == ()
