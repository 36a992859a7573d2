"""What the same offsets add to the core."""

from mirror_lib.feature import Command, Feature, Hook

FEATURE = Feature(
    name="same_offsets",
    summary="Records at the offsets that they have at the source (`mirror.offsets = same`).",
    commands={"gaps fill": Command("mirror_lib.features.same_offsets.fill_command", after="accept")},
    hooks={
        Hook.NEW_PARTITIONS: "mirror_lib.features.same_offsets.starts:prepare_starts",
        Hook.PLAN: "mirror_lib.features.same_offsets.shown:look_at_plan",
    },
)
