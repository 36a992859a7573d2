"""What drivers that start at once add to the core."""

from mirror_lib.feature import Command, Feature, Hook

_AIRFLOW = "mirror_lib.features.warm_spark.airflow"

FEATURE = Feature(
    name="warm_spark",
    summary="Spark drivers that start at once: a driver host, deferred copies, an archive of Spark's classes.",
    commands={"spark class-archive": Command("mirror_lib.features.warm_spark.command", after="pack")},
    hooks={
        Hook.DETACHED: "mirror_lib.features.warm_spark.sign_of_life:SignOfLife",
        Hook.PREFLIGHT: f"{_AIRFLOW}.deferred_operator:check_flow",
        Hook.DRIVER: f"{_AIRFLOW}.driver_start:start_on_host",
        Hook.DEFERRED_COPY: f"{_AIRFLOW}.deferred_operator:DeferredReplicateOperator",
    },
)
