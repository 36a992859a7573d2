"""Internal topics: what is created, and which failures are tolerated, as MM2 does."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from mirror_lib.cluster.admin.client import (
    ConfigEntry,
    ConfigOrigin,
    PartitionDescription,
    PerTopic,
    TopicConfigs,
    TopicDescription,
    TopicSpec,
)
from mirror_lib.cluster.protocol.kafka_errors import RequestRefusedError, TopicExistsError, UnsupportedRequestError
from mirror_lib.config.copy_settings import CopySettings, PoisonPolicy
from mirror_lib.config.model import FlowConfig, OffsetSyncsLocation
from mirror_lib.errors import AuthorizationError, ConfigurationError, MirrorError, TopicMissingError
from mirror_lib.sync.topics.internal import InternalTopic, InternalTopicState, ensure_internal_topics
from tests.support.flow_configs import flow_config

#: Connect leaves the segments at 1 GiB, of which none is compacted before it is full.
POSITIONS = TopicSpec("mm2-offsets.A.internal", 25, 2, {"cleanup.policy": "compact", "segment.bytes": "16777216"})


def a_flow(**settings: Any) -> FlowConfig:
    return flow_config(
        offset_storage_topic="mm2-offsets.A.internal",
        offset_storage_replication_factor=2,
        offset_syncs_topic_replication_factor=1,
        **settings,
    )


class FakeAdmin:
    """A cluster with some topics; new ones are made, or refused as told."""

    def __init__(
        self, cluster: str, present: Mapping[str, str] | None = None, refusals: Mapping[str, MirrorError] | None = None
    ) -> None:
        self.cluster = cluster
        self.policies = dict(present or {})
        self.refusals = refusals or {}
        self.created: list[TopicSpec] = []
        self.hidden_configs: dict[str, MirrorError] = {}

    def describe_topics(self, names: Iterable[str]) -> PerTopic[TopicDescription]:
        partitions = tuple(PartitionDescription(p, 1, "localhost", (1,), (1,)) for p in range(25))
        found = {name: TopicDescription(name, "id", partitions) for name in names if name in self.policies}
        errors: dict[str, MirrorError] = {n: TopicMissingError("missing.") for n in names if n not in found}
        return PerTopic(found, errors)

    def create_topics(self, specs: Iterable[TopicSpec], *, validate_only: bool) -> dict[str, MirrorError | None]:
        answers = {spec.name: self.refusals.get(spec.name) for spec in specs}
        if validate_only:
            return answers
        made = [spec for spec in specs if answers[spec.name] is None]
        self.created += made
        self.policies |= {spec.name: spec.configs["cleanup.policy"] for spec in made}
        return answers

    def topic_configs(self, names: Iterable[str]) -> PerTopic[TopicConfigs]:
        shown = [n for n in names if n not in self.hidden_configs]
        entries = {n: ConfigEntry("cleanup.policy", self.policies[n], ConfigOrigin.TOPIC) for n in shown}
        return PerTopic({n: TopicConfigs(n, {e.name: e}) for n, e in entries.items()}, self.hidden_configs)


def ensure(flow: FlowConfig, source: FakeAdmin, target: FakeAdmin, **more: bool) -> tuple[InternalTopic, ...]:
    admins: tuple[Any, Any] = (source, target)
    return ensure_internal_topics(flow, *admins, **more)


def test_missing_topics_are_created_as_mm2_creates_them() -> None:
    source, target = FakeAdmin("A"), FakeAdmin("B")
    assert ensure(a_flow(), source, target) == (
        InternalTopic("mm2-offsets.A.internal", "B", InternalTopicState.CREATED),
        InternalTopic("mm2-offset-syncs.B.internal", "A", InternalTopicState.CREATED),
    )
    assert target.created == [POSITIONS]
    assert source.created == [TopicSpec("mm2-offset-syncs.B.internal", 1, 1, {"cleanup.policy": "compact"})]


def test_the_syncs_topic_is_where_it_is_used_and_named_as_in_mm2_and_that_of_the_positions_never_changes() -> None:
    for settings, on_source, on_target in (
        # On the target it carries the source's alias.
        ({"offset_syncs_topic_location": OffsetSyncsLocation.TARGET}, [], ["mm2-offset-syncs.A.internal"]),
        ({"replication_policy_separator": "-"}, ["mm2-offset-syncs-B-internal"], []),
        ({"emit_offset_syncs_enabled": False}, [], []),
    ):
        source, target = FakeAdmin("A"), FakeAdmin("B")
        made = ensure(a_flow(**settings), source, target)
        assert [spec.name for spec in source.created] == on_source, settings
        assert [spec.name for spec in target.created] == ["mm2-offsets.A.internal", *on_target], settings
        assert len(made) == 1 + len(on_source) + len(on_target)


def test_a_quarantine_topic_that_keeps_everything_is_made_for_that_policy_only() -> None:
    quarantine = TopicSpec(
        "mm2-quarantine.A.internal",
        1,
        2,
        {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": "1048588"},
    )
    for policy, made in ((PoisonPolicy.QUARANTINE, [quarantine]), (PoisonPolicy.SKIP, []), (PoisonPolicy.FAIL, [])):
        target = FakeAdmin("B")
        ensure(a_flow(copy_settings=CopySettings(poison_policy=policy)), FakeAdmin("A"), target)
        assert target.created == [POSITIONS, *made]


def test_a_dry_run_creates_nothing() -> None:
    source, target = FakeAdmin("A"), FakeAdmin("B")
    assert {topic.state for topic in ensure(a_flow(), source, target, dry_run=True)} == {InternalTopicState.MISSING}
    assert source.created == target.created == []


def test_topics_that_are_there_are_left_alone() -> None:
    source = FakeAdmin("A", {"mm2-offset-syncs.B.internal": "delete"})
    target = FakeAdmin("B", {"mm2-offsets.A.internal": "compact"})
    assert {topic.state for topic in ensure(a_flow(), source, target)} == {InternalTopicState.EXISTS}
    assert source.created == target.created == []


def test_a_position_topic_that_is_not_compacted_is_refused() -> None:
    for policy in ("delete", "compact,delete"):
        target = FakeAdmin("B", {"mm2-offsets.A.internal": policy})
        with pytest.raises(ConfigurationError, match="positions would be deleted") as caught:
            ensure(a_flow(), FakeAdmin("A"), target)
        assert caught.value.where.topic == "mm2-offsets.A.internal"
        assert "B.offset.storage.topic" in caught.value.action


def test_a_position_topic_whose_configs_may_not_be_seen_is_used_and_told(caplog: pytest.LogCaptureFixture) -> None:
    target = FakeAdmin("B", {"mm2-offsets.A.internal": "delete"})
    target.hidden_configs = {"mm2-offsets.A.internal": AuthorizationError("the user needs DESCRIBE_CONFIGS.")}

    positions, syncs = ensure(a_flow(), FakeAdmin("A"), target)

    assert positions.state is InternalTopicState.EXISTS
    assert "is compacted is unknown: the user needs DESCRIBE_CONFIGS" in (positions.notice or "")
    assert caplog.messages == [positions.notice]
    assert syncs.notice is None


def test_failures_that_mm2_tolerates_are_tolerated() -> None:
    for refusal, state in (
        (TopicExistsError("there."), InternalTopicState.EXISTS),
        (UnsupportedRequestError("old."), InternalTopicState.ASSUMED),
    ):
        source = FakeAdmin("A", refusals={"mm2-offset-syncs.B.internal": refusal})
        assert ensure(a_flow(), source, FakeAdmin("B"))[1].state is state


def test_a_topic_that_is_missing_and_may_not_be_created_is_told_at_once() -> None:
    source = FakeAdmin("A", refusals={"mm2-offset-syncs.B.internal": AuthorizationError("the user needs CREATE.")})

    with pytest.raises(
        AuthorizationError, match=r"mm2-offset-syncs\.B\.internal does not exist: the user needs CREATE"
    ):
        ensure(a_flow(), source, FakeAdmin("B"))


def test_other_failures_name_the_flow_the_topic_and_the_setting() -> None:
    refusals = {"mm2-offsets.A.internal": RequestRefusedError("3 replicas, 1 broker.", action="Change it.")}
    with pytest.raises(RequestRefusedError) as caught:
        ensure(a_flow(), FakeAdmin("A"), FakeAdmin("B", refusals=refusals))
    assert caught.value.where.flow == "A->B"
    assert caught.value.where.topic == "mm2-offsets.A.internal"
    assert "B.offset.storage.replication.factor" in caught.value.action
