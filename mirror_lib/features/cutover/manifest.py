"""What cutovers and the return after a disaster add to the core."""

from mirror_lib.feature import Command, Feature

_ACLS = "mirror_lib.features.cutover.acls_command"

FEATURE = Feature(
    name="cutover",
    summary="Producers and consumers move to the target in steps with gates, and back.",
    commands={
        "acls release": Command(_ACLS, after="apply"),
        "acls revoke": Command(_ACLS, after="release"),
        "cutover": Command(
            "mirror_lib.features.cutover.command",
            "Move producers and consumers to the target in steps with gates, and back.",
            after="transform",
        ),
    },
    dags={
        "cutovers": "mirror_lib.features.cutover.airflow.dag:build_cutover_dags",
        "after_disaster": "mirror_lib.features.cutover.airflow.after_disaster.dag:build_after_disaster_dags",
    },
    imports=(
        "mirror_lib.features.backfill",
        "mirror_lib.features.forecast",
        "mirror_lib.features.repair",
        "mirror_lib.features.verify",
    ),
)
