"""What the import of other replicators' files adds to the core."""

from mirror_lib.feature import Command, Feature

_COMMANDS = "mirror_lib.features.importers.commands"

FEATURE = Feature(
    name="importers",
    summary="Files of MirrorMaker 1, Kafka Connect and Strimzi as properties files.",
    commands={
        "config import": Command(f"{_COMMANDS}.import_file", after="keys"),
        "config import-topics": Command(f"{_COMMANDS}.import_topics", after="import"),
    },
)
