"""Where target partitions begin with `mirror.offsets = same`: interrupted filling, gaps that are accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.errors import AuthorizationError, FencedError, MirrorError, OffsetsDifferError, TargetNotEmptyError
from mirror_lib.features.same_offsets import padding, starts
from mirror_lib.features.same_offsets.padding import pad
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.connections import connection_of
from tests.support.console import Console, Said
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, delete_records, delete_topic, records, watermarks
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify

_SAME = {"A->B.mirror.offsets": "same", "mirror.run.lease.seconds": "3"}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow(_SAME)


def assert_same(mirrored: MirroredTopic) -> None:
    """Each record of the source is on the target at its offset, and both logs have the same end."""
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
    ends = [watermarks(mirrored.source, mirrored.name)[1], watermarks(mirrored.target, mirrored.remote)[1]]
    assert ends[0] == ends[1]


def begin_later(
    mirrored: MirroredTopic, flow: Flow, *, at: int = 250, configs: Mapping[str, str] | None = None
) -> None:
    """A source that begins at an offset, and an empty target."""
    mirrored.create(records(at + 50))
    mirrored.create_remote(configs=configs)
    flow.sync_internal_topics()
    delete_records(mirrored.source, mirrored.name, before=at)


def fill(
    mirrored: MirroredTopic, *, upto: int, first: int = 0, meanwhile: Callable[[int], None] = lambda _: None
) -> dict[TopicPartition, MirrorError]:
    """Write filler without deleting it, as a step that is killed has done; return the errors.

    Args:
        meanwhile: what happens after each batch, while the step stands still.
    """

    async def write() -> dict[TopicPartition, MirrorError]:
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            ends = {TopicPartition(mirrored.remote, 0): (first, upto)}
            return await pad(client, FlowId("A", "B"), ends, retry_seconds=10, on_padded=meanwhile)

    return asyncio.run(write())


@pytest.mark.parametrize("upto", [1, 100, 250])
def test_filling_that_was_interrupted_goes_on(mirrored: MirroredTopic, flow: Flow, upto: int) -> None:
    begin_later(mirrored, flow)
    assert fill(mirrored, upto=upto) == {}

    assert [each for each in flow.sync_topics().notices if mirrored.remote in each] == []

    assert watermarks(mirrored.target, mirrored.remote) == (250, 250)
    assert flow.run().errors == ()
    assert_same(mirrored)


def test_a_step_that_wakes_up_after_the_copy_has_begun_appends_nothing(
    mirrored: MirroredTopic, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_later(mirrored, flow)
    monkeypatch.setattr(padding, "MOST_RECORDS", 100)

    def copy_meanwhile(_: int) -> None:
        with ThreadPoolExecutor(1) as another:
            assert another.submit(flow.run).result().errors == ()

    (error,) = fill(mirrored, upto=250, meanwhile=copy_meanwhile).values()

    assert isinstance(error, FencedError)
    assert_same(mirrored)


def test_two_steps_at_once_fill_no_further_than_one(
    mirrored: MirroredTopic, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_later(mirrored, flow)
    monkeypatch.setattr(padding, "MOST_RECORDS", 10)

    def fill_again(_: int) -> None:
        with ThreadPoolExecutor(1) as another:
            failed.append(another.submit(fill, mirrored, upto=250).result())

    failed: list[dict[TopicPartition, MirrorError]] = []
    failed.append(fill(mirrored, upto=250, meanwhile=lambda done: fill_again(done) if not failed else None))

    (first,), (second,) = (each.values() for each in failed)
    assert isinstance(first, OffsetsDifferError)
    assert isinstance(second, FencedError)
    assert flow.run().errors == ()
    assert_same(mirrored)


@pytest.mark.parametrize("codec", ["gzip", "uncompressed"])
def test_filler_is_known_in_the_compression_of_the_topic(mirrored: MirroredTopic, flow: Flow, codec: str) -> None:
    begin_later(mirrored, flow, configs={"compression.type": codec})
    assert fill(mirrored, upto=100) == {}

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (250, 250)


@pytest.mark.parametrize(
    "other", [Record(b""), Record(key=b""), Record(headers=(("a", b""),))], ids=["value", "key", "headers"]
)
def test_a_record_of_others_is_not_taken_for_filler(mirrored: MirroredTopic, flow: Flow, other: Record) -> None:
    begin_later(mirrored, flow)
    assert fill(mirrored, upto=10) == {}
    mirrored.produce_remote([other])

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (0, 11)
    (error,) = flow.run().errors
    assert isinstance(error, TargetNotEmptyError)


def test_copied_records_without_content_are_not_taken_for_filler(mirrored: MirroredTopic, flow: Flow) -> None:
    """They are what the source had, and the operator decides about the gap behind them."""
    empty = [Record()] * 5
    mirrored.create(empty)
    assert flow.run().errors == ()
    mirrored.produce(empty)
    delete_records(mirrored.source, mirrored.name, before=8)

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (0, 5)
    (error,) = flow.run().errors
    assert error.reason == "retention-gap"


def open_a_gap(mirrored: MirroredTopic, flow: Flow, *, configs: Mapping[str, str] | None = None) -> None:
    """Ten records are copied, and a gap of 490 offsets follows."""
    mirrored.create(records(10), configs=configs)
    assert flow.run().errors == ()
    mirrored.produce(records(490, start=10))
    delete_records(mirrored.source, mirrored.name, before=500)
    mirrored.produce(records(5, start=500))
    (error,) = flow.run().errors
    assert error.reason == "retention-gap"


def gaps(mirrored: MirroredTopic, flow: Flow, what: str, *words: str) -> Said:
    return Console(flow.path).say("gaps", what, "--topic", mirrored.name, *words)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_retention_gap_is_filled_at_once_if_the_target_gives_up_its_records(
    mirrored: MirroredTopic, flow: Flow, policy: str
) -> None:
    open_a_gap(mirrored, flow, configs={"cleanup.policy": policy})

    said = gaps(mirrored, flow, "fill")

    assert said.exit_code == 1
    (lost,) = said.document["fills"]
    assert (lost["target_topic"], lost["deleted_from"], lost["deleted_to"]) == (mirrored.remote, 0, 10)
    assert lost["new_position"] == 500
    assert watermarks(mirrored.target, mirrored.remote) == (0, 10)
    assert gaps(mirrored, flow, "fill", "--yes").exit_code == 0
    assert flow.run().errors == ()
    assert watermarks(mirrored.target, mirrored.remote) == (500, 505)
    assert_same(mirrored)
    (verdict,) = verify(flow, mode=VerifyMode.FULL).verdicts
    assert (verdict.verdict, verdict.records, verdict.expired_records) == (Verdict.EQUAL, 5, 10)


def test_filling_a_gap_goes_on_after_a_kill_at_any_place(mirrored: MirroredTopic, flow: Flow) -> None:
    open_a_gap(mirrored, flow)
    # Before the decision was stored
    delete_records(mirrored.target, mirrored.remote, before=10)
    assert gaps(mirrored, flow, "fill", "--yes").exit_code == 0
    # In mid-filling
    assert fill(mirrored, first=10, upto=200) == {}

    assert flow.run().errors == ()

    assert watermarks(mirrored.target, mirrored.remote) == (500, 505)
    assert_same(mirrored)


@pytest.mark.parametrize("synced", [False, True])
def test_a_gap_behind_a_target_without_records_is_decided_first_and_then_filled(
    mirrored: MirroredTopic, flow: Flow, *, synced: bool
) -> None:
    open_a_gap(mirrored, flow)
    delete_records(mirrored.target, mirrored.remote, before=10)
    if synced:
        flow.sync_topics()

    (error,) = flow.run().errors
    assert error.reason == "retention-gap"
    assert gaps(mirrored, flow, "accept", "--yes").exit_code == 0

    assert flow.run().errors == ()
    assert watermarks(mirrored.target, mirrored.remote) == (500, 505)
    assert_same(mirrored)


def test_a_gap_that_grows_while_it_is_filled_is_decided_again(mirrored: MirroredTopic, flow: Flow) -> None:
    open_a_gap(mirrored, flow)
    assert gaps(mirrored, flow, "fill", "--yes").exit_code == 0
    delete_records(mirrored.source, mirrored.name, before=503)

    (error,) = flow.run().errors

    assert error.reason == "retention-gap"
    (gap,) = flow.ledger.open_gaps("A->B")
    assert (gap.first_offset, gap.next_offset) == (500, 503)
    assert gaps(mirrored, flow, "fill", "--yes").exit_code == 0
    assert flow.run().errors == ()
    assert watermarks(mirrored.target, mirrored.remote) == (503, 505)
    assert_same(mirrored)


def test_a_target_that_has_lost_its_records_is_not_filled(mirrored: MirroredTopic, flow: Flow) -> None:
    """Filler would hide that the records are gone."""
    mirrored.create(records(20))
    assert flow.run().errors == ()
    delete_records(mirrored.source, mirrored.name, before=10)
    delete_topic(mirrored.target, mirrored.remote)
    mirrored.create_remote()

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (0, 0)
    (error,) = flow.run().errors
    assert error.reason == "target-recreated"


def test_a_gap_that_is_larger_than_what_may_be_filled_loses_nothing(mirrored: MirroredTopic) -> None:
    flow = mirrored.flow({**_SAME, "mirror.offsets.pad.max.records": "489"})
    open_a_gap(mirrored, flow)

    said = gaps(mirrored, flow, "fill", "--yes")

    assert (said.exit_code, said.document["done"]) == (3, 0)
    assert watermarks(mirrored.target, mirrored.remote) == (0, 10)
    assert [gap.state for gap in flow.ledger.open_gaps("A->B")] == ["open"]


def test_a_policy_that_is_not_set_back_is_told(
    mirrored: MirroredTopic, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right to alter configs is revoked between both changes."""
    open_a_gap(mirrored, flow, configs={"cleanup.policy": "compact,delete"})
    set_policy = starts._set_policy

    def refused(target: ClusterAdmin, policies: Mapping[str, str | None]) -> dict[str, MirrorError]:
        if set(policies.values()) == {"delete"}:
            return set_policy(target, policies)
        return {topic: AuthorizationError("refused") for topic in policies}

    monkeypatch.setattr(starts, "_set_policy", refused)

    said = gaps(mirrored, flow, "fill", "--yes")

    assert (said.exit_code, said.document["done"]) == (1, 1)
    (text,) = said.document["not_set_back"]
    assert text.startswith(f"cleanup.policy of {mirrored.remote} is still delete")
