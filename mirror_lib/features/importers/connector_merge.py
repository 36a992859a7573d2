"""Merge the connectors of one flow into the settings of one flow. Pure.

A setting applies with the value of the connector that reads it (`MirrorSourceConfig`, `MirrorCheckpointConfig`,
`MirrorHeartbeatConfig`). If two read it and have different values, the operator decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.masking import masked_text
from mirror_lib.features.importers.model import Connector, ConnectorKind
from mirror_lib.features.importers.questions import Answers, Question
from mirror_lib.features.importers.written_file import Listed
from mirror_lib.topology.java_types import parse_list
from mirror_lib.topology.names import FlowId

_S, _C, _H = ConnectorKind.SOURCE, ConnectorKind.CHECKPOINT, ConnectorKind.HEARTBEAT
_ALL = (_S, _C, _H)
#: Prefix of a setting -> the connectors that read it; the longest prefix applies; all others are read by the source's.
_READERS: Mapping[str, tuple[ConnectorKind, ...]] = {
    "": (_S,),
    # The heartbeat connector needs no source, but a flow does.
    "source.cluster.": _ALL,
    "target.cluster.": _ALL,
    "source.consumer.": (_S, _C),
    "source.producer.": (_S, _C),
    "source.admin.": (_S, _C),
    "target.": (_S, _C),
    "consumer.": (_S, _C),
    "consumer.poll.timeout.ms": (_S, _C),
    "producer.": (_S, _C),
    "producer.override.": (_S,),
    "consumer.override.": (_S,),
    "admin.": (_S, _C, _H),
    "admin.override.": (_S,),
    "replication.policy.": (_S, _C),
    "emit.offset-syncs.enabled": (_S, _C),
    "offset-syncs.topic.location": (_S, _C),
    "topic.filter.class": (_S, _C),
    "topics": (_S, _C),
    "topics.exclude": (_S, _C),
    "topics.blacklist": (_S, _C),
    "groups": (_C,),
    "group.filter.class": (_C,),
    "refresh.groups.": (_C,),
    "emit.checkpoints.": (_C,),
    "sync.group.offsets.": (_C,),
    "checkpoints.topic.": (_C,),
    "emit.heartbeats.": (_H,),
    "heartbeats.topic.": (_H,),
}
#: Settings that change the meaning of both connectors: a connector without them has the default shown here.
_DEFAULTS = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
    "offset-syncs.topic.location": "source",
}
#: Each connector has its own, and they are not settings of the flow.
_OF_CONNECTORS = frozenset({"name", "connector.class", "enabled"})
_NOT_READ = "its connector does not read it"
_OF_THE_COPY = "it applies only to topic records, which the source connector copies"
_HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a connector."""

    value: str = field(repr=False)
    origin: str


@dataclass(frozen=True, slots=True)
class MergedFlow:
    """One flow with its connectors."""

    flow: FlowId
    connectors: Mapping[ConnectorKind, Connector]
    settings: Mapping[str, Setting]
    listed: tuple[Listed, ...]


def merge(flow: FlowId, connectors: Sequence[Connector], answers: Answers) -> MergedFlow:
    """Merge the connectors of a flow; while a question is open, the first connector's setting is used."""
    chosen = _one_of_each(flow, connectors, answers)
    settings: dict[str, Setting] = {}
    listed: list[Listed] = []
    names = dict.fromkeys(name for kind in _ALL if kind in chosen for name in chosen[kind].config)
    for name in names:
        if name in _OF_CONNECTORS:
            continue
        readers = [kind for kind in readers_of(name) if kind in chosen]
        holders = {kind: chosen[kind].config[name] for kind in _ALL if kind in chosen and name in chosen[kind].config}
        read = {kind: value for kind, value in holders.items() if kind in readers}
        taken = _choose_connector(flow, name, read, readers, answers) if read else None
        if taken is not None:
            settings[name] = Setting(read[taken], chosen[taken].origin)
        value = None if taken is None else read[taken]
        reason = _OF_THE_COPY if readers_of(name) == (_S,) else _NOT_READ
        listed += [
            Listed(chosen[kind].origin, name, other, reason)
            for kind, other in holders.items()
            if kind not in readers and other != value
        ]
    return MergedFlow(flow, chosen, settings, tuple(listed))


def readers_of(name: str) -> tuple[ConnectorKind, ...]:
    """Return the connectors of MM2 that read a setting."""
    return _READERS[max((prefix for prefix in _READERS if name.startswith(prefix)), key=len)]


def same_value(name: str, one: str, other: str) -> bool:
    """Return True if two texts of a setting mean the same: addresses of brokers may be in any order."""
    if name.endswith("bootstrap.servers"):
        return set(parse_list(one)) == set(parse_list(other))
    return one.strip() == other.strip()


def shown_value(name: str, value: str) -> str:
    """Return a value as questions may show it."""
    return _HIDDEN if is_secret(name) else masked_text(value, name)


def _one_of_each(flow: FlowId, connectors: Sequence[Connector], answers: Answers) -> Mapping[ConnectorKind, Connector]:
    found: dict[ConnectorKind, Connector] = {}
    for kind in _ALL:
        candidates = [each for each in connectors if each.kind is kind]
        if not candidates:
            continue
        found[kind] = candidates[0]
        if len(candidates) > 1 and any(each.config != candidates[0].config for each in candidates):
            names = list(dict.fromkeys(each.name for each in candidates))
            question = Question(
                f"{flow}.{kind.short}-connector",
                f"{flow} has {len(candidates)} connectors {kind.value}, but a flow has one. If they divide its "
                "topics, answer with one of them and complete its topics in the new file.",
                tuple((name, f"the settings of the connector {name}") for name in names),
            )
            answer = answers.ask(question)
            found[kind] = next((each for each in candidates if each.name == answer), candidates[0])
    return found


def _choose_connector(
    flow: FlowId,
    name: str,
    read: Mapping[ConnectorKind, str],
    readers: Sequence[ConnectorKind],
    answers: Answers,
) -> ConnectorKind | None:
    """Return the connector whose value applies; None for the default of all."""
    values = dict(read)
    if name in _DEFAULTS:
        values |= {kind: _DEFAULTS[name] for kind in readers if kind not in read}
    first = next(kind for kind in readers if kind in values)
    if all(same_value(name, value, values[first]) for value in values.values()):
        return next(iter(read))
    choices: dict[str, tuple[str, str]] = {}
    for kind, value in read.items():
        choices.setdefault(value, (kind.short, f"as in the {kind.value}"))
    if len(values) > len(read):
        choices[_DEFAULTS[name]] = ("default", f"{name} = {_DEFAULTS[name]}")
    question = Question(
        f"{flow}.{name}", "; ".join(_differs(name, values, read)) + ". A flow has one value.", tuple(choices.values())
    )
    answer = answers.ask(question)
    return None if answer == "default" else next((kind for kind in read if kind.short == answer), next(iter(read)))


def _differs(name: str, values: Mapping[ConnectorKind, str], read: Mapping[ConnectorKind, str]) -> Iterator[str]:
    for kind, value in values.items():
        default = "" if kind in read else " (its default)"
        yield f"{kind.value} has {name} = {shown_value(name, value)}{default}"
