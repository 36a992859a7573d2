"""What the checks of a properties file add to the core."""

from mirror_lib.feature import Command, Feature

_COMMAND = "mirror_lib.features.lint.command"

FEATURE = Feature(
    name="lint",
    summary="Every problem of a properties file, its corrected copy, its effective settings, and all keys.",
    commands={
        "config check": Command(_COMMAND),
        "config show": Command(_COMMAND, after="check"),
        "config keys": Command(_COMMAND, after="show"),
    },
)
