"""Groups that have committed in some partitions only, as clients do that commit what they have read.

Nothing is skipped without a word, also in partitions that only the target has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mirror_lib.config.loader import load
from mirror_lib.features.cutover.model import CutoverState, Step
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.ledger.handovers import with_handovers
from tests.support.cutovers import Migration, commit, committed, migration, numbered
from tests.support.kafka import Record, create_topic, produce
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

#: Of the source: 0 and 1 have records, 2 is empty. The target has one more.
PARTITIONS, ON_TARGET = 3, 4
GATE = "uncommitted partitions"


@pytest.fixture
def moving(mirrored: MirroredTopic) -> Iterator[Migration]:
    """A topic whose group has read partition 0, and 7 records in partition 1 that nobody has read."""
    create_topic(mirrored.target, mirrored.name, partitions=ON_TARGET)
    mirrored.create(
        [*numbered(0, 10), *(Record(b"%08d" % number, partition=1) for number in range(10, 17))], partitions=PARTITIONS
    )
    made = migration(mirrored.folder, mirrored.pair, mirrored.name)
    made.there.run()
    commit(mirrored.source, f"g-{mirrored.name}", mirrored.name, {0: 10})
    yield made
    made.ledger.close()


def read_by_latest(moving: Migration, topic: str) -> list[bytes]:
    """What a member of the group reads on the target that starts at the end where it has no offset.

    It has read all partitions when it has read a record of partition 1, where it has none; these are not returned.
    """
    client = Consumer(
        {
            "bootstrap.servers": moving.pair.target.bootstrap_servers,
            "group.id": f"g-{topic}",
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
            "log_level": 3,
        }
    )
    values: list[bytes] = []

    def poll() -> bool:
        # Until it has found the end, it skips them.
        produce(moving.pair.target, topic, [Record(b"last", partition=1)])
        values.extend(each.value() for each in client.consume(100, 0.3) if each.error() is None)
        return b"last" in values

    client.subscribe([topic])
    wait_for(poll)
    values.extend(each.value() for each in client.consume(100, 2) if each.error() is None)
    client.close()
    return [value for value in values if value != b"last"]


def test_a_rehearsal_names_what_a_group_would_skip_and_no_new_record_is_skipped_once_it_is_accepted(
    moving: Migration, topic_name: str
) -> None:
    group = f"g-{topic_name}"
    refused = moving.run(moving.define("unasked", topic_name), until=Step.REHEARSE)

    # The rehearsal names group, partition and number alone; the preflight says what becomes of keys.
    assert (refused.state, refused.step) == (CutoverState.FAILED, Step.REHEARSE)
    gates = moving.gates(moving.known("unasked"), Step.REHEARSE)
    assert [name for name, gate in gates.items() if not gate.passed] == [GATE]
    assert f"{group} on {topic_name}-1" in gates[GATE].what
    assert "latest a consumer skips up to 7 records" in gates[GATE].what
    assert "--may-reset" in gates[GATE].action
    counts = moving.gates(moving.known("unasked"), Step.PREFLIGHT)["partition counts"]
    assert f"{topic_name} (3 -> 4)" in counts.what

    roll_back(moving.context(moving.known("unasked")))

    # Accepted, it moves; in the partitions without records the log start is committed, also where the source has none.
    moving.finish(moving.define("accepted", topic_name, may_reset=(group,)))
    assert committed(moving.pair.target, group, topic_name, ON_TARGET) == {0: 10, 1: -1001, 2: 0, 3: 0}

    # What is written to these before the group arrives is read, as on the source where members hold their place.
    produce(moving.pair.target, topic_name, [Record(b"early", partition=number) for number in (0, 2, 3)])
    assert read_by_latest(moving, topic_name) == [b"early"] * 3


def test_an_offset_in_an_open_transaction_stops_the_translation_of_its_group(
    moving: Migration, topic_name: str
) -> None:
    servers, group = moving.pair.source.bootstrap_servers, f"g-{topic_name}"
    client = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic_name, 0, 4)], client.consumer_group_metadata(), 30)
    client.close()
    scope = moving.define("scope", topic_name, may_reset=(group,))

    refused = moving.run_to_the_end(scope)

    assert (refused.state, refused.step) == (CutoverState.FAILED, Step.TRANSLATE)
    gates = moving.gates(scope, Step.TRANSLATE)
    assert [name for name, gate in gates.items() if not gate.passed] == ["pending offsets"]
    assert f"{group} on {topic_name}-0" in gates["pending offsets"].what

    producer.abort_transaction(30)
    moving.finish(scope)


def test_a_group_that_shall_read_everything_gets_the_log_start_and_nothing_is_skipped_on_the_way_back(
    moving: Migration, topic_name: str
) -> None:
    path = moving.there.path
    path.write_text(f"{path.read_text()}mirror.group.uncommitted = earliest\nB->A.mirror.first.start = latest\n")
    moving = replace(moving, config=load(path))

    moving.finish(moving.define("scope", topic_name))

    assert committed(moving.pair.target, f"g-{topic_name}", topic_name, ON_TARGET) == {0: 10, 1: 0, 2: 0, 3: 0}
    # The flow back takes the partition that only the target had, from its first record on.
    produce(moving.pair.target, topic_name, [Record(b"new", partition=3)])
    back = replace(moving.back, config=with_handovers(moving.back.config, moving.ledger))
    assert back.run().records == 1
