"""What the translation of offsets adds to the core."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="translate",
    summary="Offsets of one side on the other: of a partition, a time, a group, a Spark checkpoint folder.",
    commands={
        "translate": Command(
            "mirror_lib.features.translate.command",
            "Translate offsets with the exact offset map: of a partition, a time, a group, or a Spark checkpoint "
            "folder.",
            after="map",
        )
    },
)
