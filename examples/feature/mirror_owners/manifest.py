"""What this feature adds: plain data, so that reading it imports nothing."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="owners",
    summary="Who owns the topics of a flow, by the first part of their names.",
    commands={
        "owners": Command("mirror_owners.command", "List the owners of topics by their names.", after="status"),
    },
)
