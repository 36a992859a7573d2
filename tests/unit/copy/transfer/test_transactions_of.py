"""What is written in transactions, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.transfer.open_positions import transactions_of
from mirror_lib.features.transforms.model import TransformChain
from mirror_lib.features.transforms.settings import parse_transforms
from mirror_lib.topology.names import FlowId, TopicPartition

TARGET = TopicPartition("A.orders", 3)


@dataclass(frozen=True)
class FlowOnly:
    """The fields of a flow's configuration that count here."""

    transactions: bool
    flow: FlowId


def flow(*, transactions: bool = True) -> FlowConfig:
    return cast("FlowConfig", FlowOnly(transactions, FlowId("A", "B")))


def chain(**settings: str) -> TransformChain:
    texts = {f"mirror.transform.t.{name}": value for name, value in settings.items()}
    transforms, problems = parse_transforms({"mirror.transforms": "t", **texts})
    assert not [each for each in problems if each.severity == "error"]
    return transforms.chain_of("orders")


PLAIN = chain(filter="value is not null")
CHANCE = chain(filter="rand() < 0.5")
ROUTING = chain(topic="concat(topic, '-copy')")
SPREADING = chain(partition="offset % 4")


def test_given_what_cannot_be_compared_then_it_is_written_in_transactions_where_they_are_enabled() -> None:
    for case, each in (
        ("chance", CHANCE),
        ("routing", ROUTING),
        ("spreading", SPREADING),
    ):
        assert transactions_of(flow(), each, TARGET, merged=False), case
        assert transactions_of(flow(transactions=False), each, TARGET, merged=False) is None, case


def test_given_a_transform_whose_rows_can_be_made_again_then_it_needs_none_unless_topics_are_merged() -> None:
    assert transactions_of(flow(), PLAIN, TARGET, merged=False) is None
    assert transactions_of(flow(), PLAIN, TARGET, merged=True)


def test_given_a_topic_that_is_copied_as_it_is_then_it_needs_none_unless_it_is_merged() -> None:
    assert transactions_of(flow(), None, TARGET, merged=False) is None
    assert transactions_of(flow(), None, TARGET, merged=True) == "mirror:A->B:A.orders-3"
    assert transactions_of(flow(transactions=False), None, TARGET, merged=True) is None


def test_given_rows_that_stay_then_a_target_partition_has_the_id_that_fences_it() -> None:
    assert transactions_of(flow(), CHANCE, TARGET, merged=False) == "mirror:A->B:A.orders-3"


def test_given_rows_that_may_meet_elsewhere_then_they_share_a_producer_by_where_they_may_meet() -> None:
    other_topic, other_partition = TopicPartition("A.sales", 3), TopicPartition("A.orders", 4)

    def id_of(each: TransformChain, target: TopicPartition) -> str | None:
        return transactions_of(flow(), each, target, merged=False)

    assert id_of(ROUTING, TARGET) == id_of(ROUTING, other_topic) != id_of(ROUTING, other_partition)
    assert id_of(SPREADING, TARGET) == id_of(SPREADING, other_topic) == id_of(SPREADING, other_partition)
