"""Classes that published files name for policies and filters, and their replacements here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from mirror_lib.topology.policy import IDENTITY_CLASS

#: Values of class settings that never existed or belong to other settings.
FOREIGN_CLASSES = {
    "org.apache.kafka.mirror.LegacyReplicationPolicy": IDENTITY_CLASS,
    "org.apache.kafka.connect.mirror.LegacyReplicationPolicy": IDENTITY_CLASS,
}

_REGEX = (
    f"renames by a regex: write {IDENTITY_CLASS} and the same regex in mirror.topics.rename.regex and "
    "mirror.topics.rename.replacement"
)
_MAP = f"renames topics one by one: write {IDENTITY_CLASS} and mirror.topics.rename = source:target, ..."
#: Published policies that do more than keep names; what each does, and how to configure it here.
_KNOWN_POLICIES = {
    "net.ulukai.kafka.connect.mirror.RegexReplicationPolicy": f"it {_REGEX}",
    "com.zunnet.mirrormaker.replicationpolicies.TopicRemappingPolicy": f"it {_REGEX}",
    "com.lozuwa.kafka.mirrormaker.replicationpolicies.IdentityMapperTopicReplicationPolicy": f"it {_MAP}",
    "com.lozuwa.kafka.mirrormaker.replicationpolicies.IdentityMapTopicReplicationPolicy": f"it {_MAP}",
    "org.apache.kafka.connect.mirror.RenameTopicReplicationPolicy": f"it {_MAP}",
    "com.airwallex.kafka.samples.SelfDefineTopicNamePolicy": "it writes all topics into one: write "
    f"{IDENTITY_CLASS} and mirror.topics.rename, with mirror.topics.merge.enabled = true",
}
#: Parts of the names of custom policies that keep topic names.
_KEEPING = ("prefixless", "noprefix", "withoutprefix", "identity", "norename", "keep", "samename", "passthrough")
_REPLICATION_POLICY = "replication.policy.class"
_OF_FILTERS = {
    "topic.filter.class": "write its rules as topics and topics.exclude",
    "group.filter.class": "write its rules as groups and groups.exclude",
    "config.property.filter.class": "write its rules as config.properties.exclude or mirror.configs.*",
}
#: Similarity of two class names that differ by a typing error.
_SLIP = 0.93


def class_advice(key: str, name: str, known: Sequence[str]) -> str:
    """Return what to write instead of a Java class that cannot run here; never a class with another effect.

    Args:
        key: the setting.
        name: its value.
        known: the classes that the setting accepts.
    """
    simple = name.rpartition(".")[2]
    own_package = name in (simple, f"{known[0].rpartition('.')[0]}.{simple}")
    simples = {each.rpartition(".")[2]: each for each in known}
    slip = difflib.get_close_matches(simple, simples, 1, _SLIP if not own_package else 0.85)
    if slip and (own_package or difflib.SequenceMatcher(None, name, simples[slip[0]]).ratio() >= _SLIP):
        return f"did you mean {simples[slip[0]]}?"
    anew = f"implement {name or 'it'} in Python and set its dotted path"
    if key != _REPLICATION_POLICY:
        return f"{_OF_FILTERS[key]} and delete the line, or {anew}"
    if name in _KNOWN_POLICIES:
        return _KNOWN_POLICIES[name]
    if any(part in simple.lower() for part in _KEEPING):
        return f"if it keeps topic names, write {IDENTITY_CLASS}; else {anew}"
    return (
        f"if it keeps topic names, write {IDENTITY_CLASS}; if it renames them, that and mirror.topics.rename.regex "
        f"with mirror.topics.rename.replacement; else {anew}"
    )
