"""Java classes that published files name: taken where they do what a class here does, else told what to write."""

from __future__ import annotations

import pytest

from mirror_lib.config.loader import load
from mirror_lib.config.model import Severity
from mirror_lib.config.topology import flow_topology
from mirror_lib.topology.policy import IDENTITY_CLASS, IDENTITY_LIKE
from tests.support.config_files import ConfigFile

JAVA = "org.apache.kafka.connect.mirror"


def test_published_policies_that_keep_names_are_taken_with_a_warning(
    file: ConfigFile, subtests: pytest.Subtests
) -> None:
    for name in sorted(IDENTITY_LIKE):
        with subtests.test(name):
            told = file.one(f"replication.policy.class = {name}\n")
            assert (told.severity, told.line) == (Severity.WARNING, 5)
            assert IDENTITY_CLASS in (told.suggestion or "")
            topology = flow_topology(load(file.path).enabled_flows[0])
            assert topology.remote_topic("orders") == "orders"
            assert topology.remote_topic("heartbeats") == "A.heartbeats"


def test_other_classes_are_refused_with_what_to_write(file: ConfigFile, subtests: pytest.Subtests) -> None:
    for name, advice in [
        ("com.example.PrefixlessReplicationPolicy", f"if it keeps topic names, write {IDENTITY_CLASS}"),
        ("com.example.NoPrefixReplicationPolicy", f"if it keeps topic names, write {IDENTITY_CLASS}"),
        ("com.example.MyPolicy", f"if it keeps topic names, write {IDENTITY_CLASS}"),
        ("net.ulukai.kafka.connect.mirror.RegexReplicationPolicy", "mirror.topics.rename.regex"),
        ("com.airwallex.kafka.samples.SelfDefineTopicNamePolicy", "mirror.topics.merge.enabled"),
        ("DefaultReplicationPolicy", f"did you mean {JAVA}.DefaultReplicationPolicy?"),
        (f"{JAVA}.IdentityReplicatonPolicy", f"did you mean {JAVA}.IdentityReplicationPolicy?"),
        ("org.apache.kafka.conect.mirror.IdentityReplicationPolicy", f"did you mean {IDENTITY_CLASS}?"),
    ]:
        with subtests.test(name):
            told = file.one(f"replication.policy.class = {name}\n")
            assert (told.severity, told.line) == (Severity.ERROR, 5)
            assert advice in (told.suggestion or "")
            assert "Default" not in (told.suggestion or "") or name == "DefaultReplicationPolicy"

    for key, advice in [
        ("topic.filter.class", "topics.exclude"),
        ("group.filter.class", "groups.exclude"),
        ("config.property.filter.class", "config.properties.exclude"),
    ]:
        with subtests.test(key):
            told = file.one(f"{key} = com.example.Filter\n")
            assert told.severity is Severity.ERROR
            assert advice in (told.suggestion or "")
