"""What an independent consumer says of a copy: the opinion with which an audit is compared. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.support.kafka import Record
from tools.trials.model import Finding, Kind, Offsets, joined
from tools.trials.scene import TrialError


def must_be_equal(source: Sequence[Record], target: Sequence[Record]) -> int:
    """Return the number of records, which both sides have in the same order.

    Raises:
        TrialError: they have not, so that the replicator itself was wrong.
    """
    here, there = ([replace(each, offset=None) for each in side] for side in (source, target))
    if here != there:
        raise TrialError(f"the copy is not equal: {len(here)} records on the source, {len(there)} on the target")
    return len(here)


def repeats(source: Sequence[Record], target: Sequence[Record]) -> tuple[Finding, ...]:
    """Return the records that the target has once more, where every record of the source is unique.

    Raises:
        TrialError: there is anything else, so that this is no copy that was only made more than once.
    """
    offsets = {replace(each, offset=None): each.offset or 0 for each in source}
    if len(offsets) != len(source):
        raise TrialError("records of the source are not unique")
    seen: dict[Record, None] = {}
    found: list[Finding] = []
    for each in target:
        plain = replace(each, offset=None)
        if plain not in offsets:
            raise TrialError(f"the target has a record that the source has not, at offset {each.offset}")
        if plain in seen:
            here, there = offsets[plain], each.offset or 0
            found.append(
                Finding(
                    Kind.REPEATED,
                    1,
                    Offsets(each.partition, here, here),
                    Offsets(each.partition, there, there),
                )
            )
        seen[plain] = None
    if list(seen) != list(offsets):
        raise TrialError(f"the target has {len(seen)} different records of {len(offsets)}, or another order")
    return tuple(joined(found))
