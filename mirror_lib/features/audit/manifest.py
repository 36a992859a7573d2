"""What the audit adds to the core."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="audit",
    summary="Whether any replication between two clusters is right, without a file, a ledger or a map.",
    commands={
        "audit": Command(
            "mirror_lib.features.audit.command",
            "Compare copies of topics by any replicator. Exit codes: 0 right, 1 not verifiable, 3 wrong.",
            after="verify",
        ),
    },
    imports=("mirror_lib.features.verify",),
)
