"""What this feature adds: plain data, so that reading it imports nothing."""

from mirror_lib.feature import Command, Feature, Hook, Setting

UNKNOWN = Setting("mirror.owners.unknown", "Owner of topics without a dot in their names.", default="nobody")
FEATURE = Feature(
    name="owners",
    summary="Who owns the topics of a flow, by the first part of their names.",
    commands={
        "owners": Command("mirror_owners.command", "List the owners of topics by their names.", after="status"),
    },
    hooks={Hook.PREFLIGHT: "mirror_owners.preflight:check_flow"},
    settings=(UNKNOWN,),
)
