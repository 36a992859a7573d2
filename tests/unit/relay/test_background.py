"""Background tasks: none fails unseen, none is left over."""

from __future__ import annotations

import asyncio

from mirror_lib.relay.background import Background


def test_a_task_that_raises_is_told() -> None:
    crashes: list[BaseException] = []

    async def fail() -> None:
        raise LookupError("a fault")

    async def scene() -> None:
        Background(crashes.append).start(fail())
        await asyncio.sleep(0.01)

    asyncio.run(scene())
    assert [str(crash) for crash in crashes] == ["a fault"]


def test_stop_ends_what_still_runs_and_calls_that_no_crash() -> None:
    crashes: list[BaseException] = []

    async def scene() -> bool:
        background = Background(crashes.append)
        task = background.start(asyncio.sleep(60))
        await background.stop()
        return task.cancelled()

    assert asyncio.run(scene())
    assert crashes == []
