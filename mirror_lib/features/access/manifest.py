"""What the rights of a flow add to the core."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="access",
    summary="Rights that the user of a flow needs on both clusters, and the commands that grant them.",
    commands={"acls required": Command("mirror_lib.features.access.command", after="revoke")},
)
