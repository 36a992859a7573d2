"""What verification adds to the core."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="verify",
    summary="Proof that a target equals its source, record by record or by state.",
    commands={
        "verify": Command(
            "mirror_lib.features.verify.command",
            "Compare the target with its source. Exit codes: 0 equal, 1 not verifiable, 3 different.",
            after="status",
        ),
    },
    dags={"verifications": "mirror_lib.features.verify.airflow.dag:build_verify_dags"},
    imports=("mirror_lib.features.backfill", "mirror_lib.features.transforms"),
)
