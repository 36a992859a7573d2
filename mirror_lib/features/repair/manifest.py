"""What the repairs by hand add to the core."""

from mirror_lib.feature import Command, Feature

_COMMANDS = "mirror_lib.features.repair.commands"

FEATURE = Feature(
    name="repair",
    summary="Repairs by hand: positions, the offset map, lost deletions, a cluster of another id.",
    commands={
        "position": Command(f"{_COMMANDS}.position", "Show and set the positions of partitions.", after="gaps"),
        "clusters": Command(
            f"{_COMMANDS}.clusters", "The cluster ids that the state of a flow belongs to.", after="position"
        ),
        "map": Command(f"{_COMMANDS}.offset_map", "The offset map of a flow.", after="clusters"),
        "gaps delete-keys": Command(f"{_COMMANDS}.delete_keys", after="recopy"),
    },
    imports=("mirror_lib.features.transforms", "mirror_lib.features.verify"),
)
