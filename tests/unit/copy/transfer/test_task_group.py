"""Background tasks: none fails unseen, none is left over."""

from __future__ import annotations

import asyncio

from mirror_lib.copy.transfer.task_group import Background


async def test_a_task_that_raises_is_told() -> None:
    crashes: list[BaseException] = []

    async def fail() -> None:
        raise LookupError("a fault")

    Background(crashes.append).start(fail())
    await asyncio.sleep(0.01)

    assert [str(crash) for crash in crashes] == ["a fault"]


async def test_stop_ends_what_still_runs_and_calls_that_no_crash() -> None:
    crashes: list[BaseException] = []
    background = Background(crashes.append)
    task = background.start(asyncio.sleep(60))

    await background.stop()

    assert task.cancelled()
    assert crashes == []


class TestAnswers:
    """What is to be done with an answer, without a task that waits for it."""

    async def test_a_fault_in_what_is_done_is_told(self) -> None:
        crashes: list[BaseException] = []

        def then(done: asyncio.Future[None]) -> None:
            raise LookupError("a fault")

        Background(crashes.append).when_done(asyncio.sleep(0), then)
        await asyncio.sleep(0.01)

        assert [str(crash) for crash in crashes] == ["a fault"]

    async def test_nothing_is_done_after_the_end_with_answers_that_are_there_or_not(self) -> None:
        got: list[object] = []
        loop, background = asyncio.get_running_loop(), Background(_unexpected)
        there: asyncio.Future[None] = loop.create_future()
        missing: asyncio.Future[None] = loop.create_future()
        for each in (there, missing):
            background.when_done(each, got.append)
        there.set_result(None)

        await background.stop()

        assert missing.cancelled()
        assert got == []


def _unexpected(error: BaseException) -> None:
    raise AssertionError("nothing was to fail") from error
