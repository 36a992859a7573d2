"""Which partitions are in one bin when some topics are transformed."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.config.data_plane import NO_CHAIN
from mirror_lib.features.transforms.model import ColumnExpressions, Transform, TransformChain
from mirror_lib.planning.by_transform_chain import split_job, whole_takeovers
from mirror_lib.planning.model import CopyJob, RunPlan, Takeover
from tests.support.brokers.fake_cluster import FakeCluster, job, opened

FILTER = TransformChain((Transform("live", filter="value is not null"),))
ROUTE = TransformChain((Transform("route", columns=ColumnExpressions(topic="'all'")),))
SCATTER = TransformChain((Transform("scatter", columns=ColumnExpressions(partition="0")),))


def job_of(**chains: TransformChain) -> CopyJob:
    """Two topics of three partitions each, in two bins."""
    source, target = FakeCluster("A"), FakeCluster("B")
    partitions = []
    for topic in ("orders", "payments"):
        for number in range(3):
            source.add(topic, number)
            each = opened(source, target, topic, number)
            partitions.append(replace(each, plan=replace(each.plan, end=100)))
    given = job(*partitions)
    return replace(given, bins=(tuple(partitions[:3]), tuple(partitions[3:])), chains=chains)


def names(given: CopyJob) -> list[list[str]]:
    return [[f"{each.plan.source.topic}-{each.plan.source.partition}" for each in bin_] for bin_ in given.bins]


def test_given_no_chains_when_split_then_the_job_is_copied_as_it_is() -> None:
    given = job_of()

    assert split_job(given) == (given, ())


def test_given_one_transformed_topic_when_split_then_each_goes_its_way_and_none_is_lost() -> None:
    given = job_of(orders=FILTER)

    raw, (transformed,) = split_job(given)

    assert sorted(name for bin_ in names(raw) for name in bin_) == ["payments-0", "payments-1", "payments-2"]
    assert sorted(name for bin_ in names(transformed.job) for name in bin_) == ["orders-0", "orders-1", "orders-2"]
    assert transformed.chain == FILTER
    assert len(raw.bins) == len(transformed.job.bins) == 2


def test_given_topics_with_the_same_chain_when_split_then_they_are_one_job() -> None:
    raw, transformed = split_job(job_of(orders=FILTER, payments=FILTER))

    assert raw.bins == ()
    assert len(transformed) == 1
    assert sum(len(bin_) for bin_ in transformed[0].job.bins) == 6


def test_given_records_that_may_meet_in_a_topic_when_split_then_partitions_of_one_number_share_a_writer() -> None:
    _, (transformed,) = split_job(job_of(orders=ROUTE, payments=ROUTE))

    for bin_ in names(transformed.job):
        for name in bin_:
            topic, number = name.split("-")
            other = "payments" if topic == "orders" else "orders"
            assert f"{other}-{number}" in bin_


def test_given_a_partition_that_is_set_when_split_then_all_share_one_writer() -> None:
    _, (transformed,) = split_job(job_of(orders=SCATTER))

    assert len(transformed.job.bins) == 1


def test_given_a_part_of_a_plan_when_a_transformed_partition_is_taken_over_then_it_goes_to_the_whole_end() -> None:
    given = job_of(orders=FILTER)
    first, second, *_ = given.bins[0]
    other = given.bins[1][0]
    taken = tuple(replace(each, takeover=Takeover(0, 0)) for each in (first, other))
    plan = RunPlan(
        flow=given.flow,
        bins=(tuple(replace(each.plan, end=900) for each in (first, second, other)),),
        problems=(),
        idle=0,
    )

    ((changed, kept, raw),) = whole_takeovers([(taken[0], second, taken[1])], plan, given.chains)

    assert changed.plan.end == 900
    assert (kept, raw) == (second, taken[1])


def test_given_partitions_that_are_written_in_transactions_when_split_then_they_go_through_rows_unchanged() -> None:
    given = job_of()
    merged = tuple(replace(each, transactions="mirror:A->B:A.orders-0") for each in given.bins[0])

    raw, chains = split_job(replace(given, bins=(merged, given.bins[1])))

    assert sorted(name for bin_ in names(raw) for name in bin_) == ["payments-0", "payments-1", "payments-2"]
    assert [each.chain for each in chains] == [NO_CHAIN]
    assert sorted(name for bin_ in names(chains[0].job) for name in bin_) == ["orders-0", "orders-1", "orders-2"]
