"""What is said of a batch that would take too much memory to look into."""

from __future__ import annotations

from mirror_lib.errors import OversizedBatchError

_ACTION = (
    "A copy that begins at the batch's own first offset (`mirror position set`) passes it on as it is, unless its "
    "topic is compacted. Otherwise copy its records with clients of Kafka, and continue behind it by the same command."
)


def oversized(what: str) -> OversizedBatchError:
    """The error for a batch that somebody has to look into.

    Args:
        what: how large it is, to be read after "a batch".
    """
    return OversizedBatchError(f"a batch {what}, and somebody has to look inside.", action=_ACTION)
