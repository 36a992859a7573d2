"""What cannot be combined with `mirror.offsets = same`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mirror_lib.config.first_start import EARLIEST, first_starts
from mirror_lib.config.model import ExistingTarget, Fencing, FlowConfig


def unfit_for_same_offsets(flow: FlowConfig) -> Iterator[str]:
    """Yield why the records of a flow with the same offsets could not get them; nothing for other flows."""
    if not flow.copy_settings.same_offsets:
        return
    starts = first_starts(flow)
    reasons = (
        (flow.transforms, "transforms may make none or several records of one"),
        (flow.fencing is Fencing.NONE, "mirror.fencing=none: offsets without a record need transactional ids"),
        (flow.existing_target is ExistingTarget.APPEND, "mirror.target.existing=append: target topics must be new"),
        (
            any(start != EARLIEST for start in (starts.default, *(start for _, start in starts.topics))),
            "mirror.first.start or auto.offset.reset: a copy begins at the first record of the source",
        ),
    )
    yield from (f"mirror.offsets=same cannot be used with {why}" for applies, why in reasons if applies)
