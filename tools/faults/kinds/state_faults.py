"""Faults of what the flow depends on: the target's policy, the ledger, and topics that change during a run."""

from __future__ import annotations

from confluent_kafka import Producer

from tools.faults.errors import FaultsError
from tools.faults.flow_config import DOOMED_PREFIX, INPUT_PREFIX, TARGET_PREFIX
from tools.faults.kinds.scene import Scene
from tools.faults.world import pause

#: The topic grows up to this number of partitions; then another one does.
_PARTITIONS_MOST = 8
#: No batch of a record with a stamp fits (90 bytes or more). A transaction's marker does (78 bytes): a coordinator that
#: cannot write one never tries again (Java `TransactionMarkerRequestCompletionHandler`), and its id is not free again.
_TOO_SMALL_BYTES = "85"
DOOMED_PARTITIONS = 3
_DOOMED_RECORDS = 6000
_FLUSH_SECONDS = 60.0


def target_refuses(scene: Scene) -> bool:
    """The target's topics reject everything for a while, like after a change of policy or a full quota."""
    target, topics = scene.world.target, list(scene.world.target_topics())
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        target.topics.configure(topics, "max.message.bytes", _TOO_SMALL_BYTES)
        try:
            scene.keep_running_for(scene.rng.uniform(0.5, 3.0))
        finally:
            target.topics.configure(topics, "max.message.bytes", None)
    return hit


def ledger_gone(scene: Scene) -> bool:
    """The ledger's database stops during a run, and is restarted after a run that could not even begin."""
    postgres, config = scene.world.postgres, scene.world.configs.postgres
    if postgres is None or config is None:
        raise FaultsError("no PostgreSQL server was started.")
    scene.use(config)
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        postgres.crash()
    try:
        scene.end(driver)
        if scene.rng.random() < 0.5:
            scene.run(driver)
            scene.end(driver)
    finally:
        postgres.start()
    return hit


def partitions_added(scene: Scene) -> bool:
    """A topic grows on the source while it is copied, and on the target by hand or by the flow's own sync."""
    topics = scene.world.source_topics()
    name = min(topics, key=lambda topic: (topics[topic], topic))
    partitions = topics[name] + 1
    if partitions > _PARTITIONS_MOST:
        name = _new_input_topic(scene)
        partitions = scene.world.source_topics()[name] + 1
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        scene.world.source.topics.grow(name, partitions)
        scene.world.input.grow(name, partitions)
        by_hand = scene.rng.random() < 0.5
        if by_hand:
            scene.world.target.topics.grow(TARGET_PREFIX + name, partitions)
    scene.end(driver)
    if not by_hand:
        scene.prepare()
    return hit


def topic_deleted(scene: Scene) -> bool:
    """A separate topic is deleted on the source while it is copied; its copied records do not count."""
    source, target = scene.world.source, scene.world.target
    name = f"{DOOMED_PREFIX}{scene.rng.randrange(10**6)}"
    source.topics.create(name, DOOMED_PARTITIONS, source.brokers)
    fill(source.topics.bootstrap_servers, name)
    scene.prepare()
    watched = {TARGET_PREFIX + name: DOOMED_PARTITIONS}
    try:
        with scene.braked():
            driver = scene.begin(watched=watched)
            hit = scene.wait_mid_copy(driver, records=_DOOMED_RECORDS)
            source.topics.delete(name)
        scene.end(driver)
    finally:
        target.topics.delete(TARGET_PREFIX + name)
    pause(0.2)
    return hit


def fill(bootstrap_servers: str, topic: str, first: int = 0) -> None:
    """Write to a topic that is not part of the input."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "log_level": 0})
    for number in range(first, first + _DOOMED_RECORDS):
        producer.produce(topic, value=b"%d" % number * 20, partition=number % DOOMED_PARTITIONS)
        producer.poll(0)
    producer.flush(_FLUSH_SECONDS)


def _new_input_topic(scene: Scene) -> str:
    """Create another topic of the input, with one partition without a producer yet."""
    source = scene.world.source
    name = f"{INPUT_PREFIX}more-{scene.rng.randrange(10**6)}"
    source.topics.create(name, 1, source.brokers)
    scene.world.input.grow(name, 1)
    scene.prepare()
    return name
