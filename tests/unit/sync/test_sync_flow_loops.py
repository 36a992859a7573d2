"""A flow that closes a circle is refused before it copies anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mirror_lib.cluster.topics.position_format import ClusterPair
from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import ConfigurationError
from mirror_lib.sync.loops.flow import Namesakes, copies_of_namesakes, refuse_loops, refuse_namesakes, refuse_own_copies

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def a_file(folder: Path, clusters: Sequence[str], *lines: str) -> MirrorConfig:
    path = folder / "mirror.properties"
    servers = [f"{alias}.bootstrap.servers = localhost:9" for alias in clusters]
    path.write_text("\n".join([f"clusters = {', '.join(clusters)}", *servers, *lines, ""]))
    return load(path)


def test_given_one_cluster_under_two_aliases_then_the_advice_is_enough_to_copy_within_it(tmp_path: Path) -> None:
    one = ClusterPair("id", "id")
    lines = ["A->B.enabled = true", "A->B.topics = orders"]

    def refuse(*more: str) -> None:
        topology = flow_topology(a_file(tmp_path, "AB", *lines, *more).flow("A->B"))
        copied = [topic for topic in ("orders", "heartbeats") if topology.replicates(topic)]
        refuse_own_copies(topology, one, {topic: topology.remote_topic(topic) for topic in copied})

    with pytest.raises(ConfigurationError) as caught:
        refuse()
    assert "list them in `topics`" in caught.value.action
    assert "heartbeats.replication.enabled = false" in caught.value.action
    refuse("heartbeats.replication.enabled = false")


def test_given_two_files_with_the_same_aliases_for_swapped_clusters_then_copies_of_the_namesake_are_found(
    tmp_path: Path,
) -> None:
    topology = flow_topology(a_file(tmp_path, ["src", "dst"], "src->dst.enabled = true").flow("src->dst"))
    there = ["orders", "src.orders", "src.heartbeats", "heartbeats"]
    here = ClusterPair("one", "two")

    for internal in ("mm2-offsets.src.internal", "src.checkpoints.internal"):
        found = copies_of_namesakes(topology, [*there, internal], there)
        assert found == Namesakes(("src.heartbeats", "src.orders"), internal)
        # Who writes them is known by the positions: MirrorMaker's do not say it.
        refuse_namesakes(topology, found, here, [])
        refuse_namesakes(topology, found, here, [ClusterPair("three", "one")])
        with pytest.raises(
            ConfigurationError, match=r"calls src, too.* src\.heartbeats, src\.orders\. That cluster is dst"
        ):
            refuse_namesakes(topology, found, here, [ClusterPair("two", "one")])
    # Names with a prefix are nothing unusual, and neither are copies of other clusters.
    assert copies_of_namesakes(topology, there, there) is None
    assert copies_of_namesakes(topology, ["mm2-offsets.src.internal"], ["orders", "x.orders"]) is None


def test_one_name_in_both_directions_is_refused_and_the_way_is_told(tmp_path: Path) -> None:
    both = ("A->B.enabled = true", "B->A.enabled = true")
    kept, default = "mirror.topics.rename = orders:orders", "use the default replication policy"
    # The policy in use is no way out.
    for line, advised in [(IDENTITY, default), (kept, "do not rename topics")]:
        config = a_file(tmp_path, "AB", *both, line)
        for flow in ("A->B", "B->A"):
            with pytest.raises(
                ConfigurationError, match=r"would copy records in a loop: orders on . -> orders on . -> orders on ."
            ) as caught:
                refuse_loops(config, config.flow(flow), ["orders"])
            assert advised in caught.value.action
            assert (default in caught.value.action) == (line == IDENTITY)


def test_directions_that_share_no_name_may_both_run(tmp_path: Path) -> None:
    there, back = "A->B.enabled = true", "B->A.enabled = true"
    apart = ("A->B.topics = east-.*", "B->A.topics = west-.*", IDENTITY)

    for lines, topics in (
        # The default policy's names show the way.
        ((there, back), ["orders", "B.orders"]),
        ((there, back, *apart), ["east-orders"]),
        ((there, IDENTITY), ["orders"]),
    ):
        config = a_file(tmp_path, "AB", *lines)
        assert refuse_loops(config, config.flow("A->B"), topics) == (), lines


def test_a_circle_of_other_flows_further_on_is_told_and_not_refused(tmp_path: Path) -> None:
    flows = [f"{flow}.enabled = true" for flow in ("A->B", "B->C", "C->B")]
    config = a_file(tmp_path, "ABC", *flows, "A->B.topics = t", IDENTITY)

    (loop,) = refuse_loops(config, config.flow("A->B"), ["t"])

    assert str(loop) == "t on B -> t on C -> t on B"
    with pytest.raises(ConfigurationError, match="loop"):
        refuse_loops(config, config.flow("B->C"), ["t"])
