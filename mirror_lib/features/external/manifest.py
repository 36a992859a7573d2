"""What flows in an Airflow of another environment add to the core."""

from mirror_lib.feature import Command, Feature

FEATURE = Feature(
    name="external",
    summary="Flows in an Airflow that does not have this package, by a DAG file that needs nothing.",
    commands={
        "airflow": Command(
            "mirror_lib.features.external.command",
            "Run flows in an Airflow of another environment (`mirror.airflow.execution = external`).",
            after="spark",
        ),
    },
)
