"""What runs on new records add to the core."""

from mirror_lib.feature import Feature, Hook

FEATURE = Feature(
    name="watch",
    summary="Runs that new records on a source start (`mirror.schedule = on-new-records`).",
    hooks={Hook.ON_NEW_RECORDS: "mirror_lib.features.watch.airflow.dag_schedule:watched_schedule"},
)
