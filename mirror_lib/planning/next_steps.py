"""What an operator does next about a partition that several checks stop. Pure.

Each text has the whole command; `OFFSET` is for the operator to choose.
"""

from __future__ import annotations

from mirror_lib.errors import Where


def set_position_or_copy_anew(where: Where, to: int | None = None) -> str:
    """What to do if nothing shows what the target has.

    Args:
        where: the flow and the source partition; so for all functions.
        to: the source offset at which to continue, if it is known.
    """
    command = where.position_set(to)
    return f"Set the position: {command}, or copy the topic again under another name (mirror.topics.rename)."


def after_foreign_records(where: Where, to: int | None = None) -> str:
    """What to do about records on the target that the flow has not copied there."""
    return (
        "Only the replicator may write to remote topics: find the other producer. "
        f"{set_position_or_copy_anew(where, to)}"
    )


def with_the_previous_transform(where: Where) -> str:
    """What to do about records on the target that the present transform does not make."""
    return f"Run once with the previous transform. If another producer wrote there: {after_foreign_records(where)}"


def after_lost_records(where: Where) -> str:
    """What to do if the target has less than was copied to it."""
    return (
        f"The target lost records or was created again: find the cause, then set the position: {where.position_set()}."
    )


def after_malformed_position(where: Where) -> str:
    """What to do if the latest position of a partition cannot be read."""
    return (
        "Find out who writes to the position topic; only MirrorMaker 2 and this program may. Then set the position: "
        f"{where.position_set()}."
    )


def after_interrupted_merge(where: Where) -> str:
    """What to do if several topics are copied to one, and the target does not show how far each of them was copied."""
    return (
        "Copy the merged topics again into a new topic (mirror.topics.rename), or set the position of each of them: "
        f"{where.position_set()}."
    )
