"""Faults of brokers: killed and started again, one or all, and leaders that move."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Thread

from tools.faults.clusters.side import Side
from tools.faults.clusters.topics import Partition
from tools.faults.flow_config import TARGET_PREFIX
from tools.faults.kinds.scene import Scene

#: How long a broker stays away.
_AWAY_SECONDS = (0.3, 6.0)
_RECOVERY_SECONDS = 240.0


def source_broker_killed(scene: Scene) -> bool:
    """One broker of the source."""
    source = scene.world.source
    return _killed(scene, source, [scene.rng.choice(source.node_ids)])


def target_broker_killed(scene: Scene) -> bool:
    """One broker of the target."""
    target = scene.world.target
    return _killed(scene, target, [scene.rng.choice(target.node_ids)])


def source_power_cut(scene: Scene) -> bool:
    """All brokers of the source."""
    return _killed(scene, scene.world.source, scene.world.source.node_ids)


def target_power_cut(scene: Scene) -> bool:
    """All brokers of the target."""
    return _killed(scene, scene.world.target, scene.world.target.node_ids)


def source_leaders_moved(scene: Scene) -> bool:
    """Every partition of the source gets another leader."""
    return _moved(scene, scene.world.source)


def target_leaders_moved(scene: Scene) -> bool:
    """Every partition of the target gets another leader, also those of the position topic."""
    return _moved(scene, scene.world.target)


def isr_too_small(scene: Scene) -> bool:
    """The target requires three in-sync replicas while one broker is down: it responds with NOT_ENOUGH_REPLICAS."""
    target = scene.world.target
    topics = list(scene.world.target_topics())
    target.topics.configure(topics, "min.insync.replicas", "3")
    try:
        return _killed(scene, target, [scene.rng.choice(target.node_ids)])
    finally:
        target.topics.configure(topics, "min.insync.replicas", None)


def _moved(scene: Scene, side: Side) -> bool:
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        side.topics.move_leaders({name: n for name, n in side.topics.partitions().items() if not name.startswith("__")})
    scene.end(driver)
    return hit


def _killed(scene: Scene, side: Side, nodes: Sequence[int]) -> bool:
    led = _led_by(scene, side, nodes)
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        for node in nodes:
            side.kill(node)
    scene.keep_running_for(scene.rng.uniform(*_AWAY_SECONDS))
    restarting = Thread(target=side.restart, args=(nodes,), name="restart")
    restarting.start()
    try:
        scene.keep_running(lambda: side.listening(nodes), _RECOVERY_SECONDS, f"the return of {side.name}'s brokers")
        returned = time.monotonic()
        side.topics.renew()
        # Not from before the kill: data that was in flight then still arrived.
        since = scene.world.target.topics.ends(scene.world.target_topics())
        scene.keep_running(lambda: scene.moved(led, since), _RECOVERY_SECONDS, "copying after a broker's return")
        scene.recovery_seconds = time.monotonic() - returned
    finally:
        restarting.join()
    return hit


def _led_by(scene: Scene, side: Side, nodes: Sequence[int]) -> list[Partition]:
    """Return the partitions, by the target's names, that these brokers lead now."""
    on_source = side is scene.world.source
    topics = scene.world.source_topics() if on_source else scene.world.target_topics()
    places = [place for place, leader in side.topics.leaders(topics).items() if leader in nodes]
    return [(TARGET_PREFIX + topic, number) for topic, number in places] if on_source else places
