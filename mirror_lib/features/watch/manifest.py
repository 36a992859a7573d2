"""What runs on new records add to the core."""

from mirror_lib.feature import Feature, Hook, Setting

POLL = Setting(
    "mirror.schedule.poll",
    "With `mirror.schedule = on-new-records`: interval at which the triggerer requests the latest offsets of the "
    "source; an interval such as `2s`. Flows of a file with the same source share the requests, and the shortest "
    "interval.",
    "2s",
    check="mirror_lib.config.schedule:parse_interval",
    after="mirror.schedule.longest",
)
FEATURE = Feature(
    name="watch",
    summary="Runs that new records on a source start (`mirror.schedule = on-new-records`).",
    hooks={Hook.ON_NEW_RECORDS: "mirror_lib.features.watch.airflow.dag_schedule:watched_schedule"},
    settings=(POLL,),
)
