"""Faults between the copy and the brokers, made by the proxies of its connections."""

from __future__ import annotations

from tools.faults.clusters.side import Side
from tools.faults.kinds.scene import Scene
from tools.faults.world import pause
from tools.testbed.kafka_frames import PRODUCE

_LATENCY_MS = 200
_REFUSED_SECONDS = (0.5, 5.0)
_SILENT_SECONDS = (0.5, 8.0)


def acknowledgement_lost(scene: Scene) -> bool:
    """The target has the records, and the response never arrives."""
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        swallowed = 0
        for _ in range(scene.rng.randint(1, 4)):
            happened = scene.world.target.proxy.swallow_next_answer(PRODUCE)
            while not driver.answered and not happened.wait(0.05):
                pass
            swallowed += happened.is_set()
    scene.end(driver)
    return hit and swallowed > 0


def latency(scene: Scene) -> bool:
    """Both clusters have a high latency during a run."""
    proxies = (scene.world.source.proxy, scene.world.target.proxy)
    for proxy in proxies:
        proxy.latency(_LATENCY_MS)
    try:
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        scene.end(driver)
    finally:
        for proxy in proxies:
            proxy.latency(0)
    return hit


def connections_cut(scene: Scene) -> bool:
    """All connections of one side, or of both, are reset several times."""
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        for _ in range(scene.rng.randint(1, 5)):
            for side in scene.rng.choice(_sides(scene)):
                side.proxy.cut()
            pause(scene.rng.uniform(0.0, 0.4))
    scene.end(driver)
    return hit


def connections_refused(scene: Scene) -> bool:
    """Connections are reset and new ones refused for some seconds."""
    sides = scene.rng.choice(_sides(scene))
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        for side in sides:
            side.proxy.refuse()
            side.proxy.cut()
        try:
            pause(scene.rng.uniform(*_REFUSED_SECONDS))
        finally:
            for side in sides:
                side.proxy.accept()
    scene.end(driver)
    return hit


def target_silent(scene: Scene) -> bool:
    """Connections to the target stay open, and no byte passes."""
    proxy = scene.world.target.proxy
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        proxy.stall()
        try:
            pause(scene.rng.uniform(*_SILENT_SECONDS))
        finally:
            proxy.resume()
    scene.end(driver)
    return hit


def _sides(scene: Scene) -> list[tuple[Side, ...]]:
    source, target = scene.world.source, scene.world.target
    return [(source,), (target,), (source, target)]
