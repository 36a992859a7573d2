"""What the packing of packages adds to the core."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="pack",
    summary="The Python packages of Spark's executors as one archive, from this installation.",
    commands={"spark pack": Command("mirror_lib.features.pack.command")},
)
