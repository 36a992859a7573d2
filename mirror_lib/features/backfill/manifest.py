"""What backfills add to the core."""

from mirror_lib.feature import Command, Feature, Hook

FEATURE = Feature(
    name="backfill",
    summary="Bounded copies next to a flow: history, or records to copy again.",
    commands={
        "backfill": Command(
            "mirror_lib.features.backfill.command",
            "Copy a bounded range of topics next to a flow: history, or records to copy again.",
            after="translate",
        ),
    },
    dags={"backfills": "mirror_lib.features.backfill.airflow.dag:build_backfill_dags"},
    hooks={
        Hook.AFTER_CUTOVER: "mirror_lib.features.backfill.late_writes:after_cutover",
        Hook.BACKFILL: "mirror_lib.features.backfill.run:run_backfill",
    },
)
