"""Errors for batches and records that exceed memory limits."""

from __future__ import annotations

from mirror_lib.errors import BeyondMemoryError, OversizedBatchError, Where

_ACTION = (
    "A copy that starts at the first offset of the batch (`mirror position set`) forwards it unchanged, unless its "
    "topic is compacted. Otherwise copy its records with Kafka clients, and continue after it with the same command."
)


def oversized_error(what: str) -> OversizedBatchError:
    """The error for a batch that is too large to be decoded.

    Args:
        what: its size; continues the text "a batch".
    """
    return OversizedBatchError(f"a batch {what}, and its records must be decoded.", action=_ACTION)


def beyond_memory(what: str) -> BeyondMemoryError:
    """The error for data that does not fit into `mirror.task.memory.bytes`.

    Args:
        what: a whole sentence.
    """
    return BeyondMemoryError(
        what,
        action="Raise mirror.task.memory.bytes of the flow, and the memory of Spark's executors with it. The record is "
        "not skipped, regardless of mirror.poison.policy: it may be valid.",
    )


def record_beyond_memory(size: int, largest: int, offset: int) -> BeyondMemoryError:
    """The error for a record that is too large to be a row; `where` has only its offset."""
    error = beyond_memory(
        f"a record takes {size} bytes of memory when decompressed, but a task that transforms records allows "
        f"{largest} for one."
    )
    error.where = Where(offset=offset)
    return error
