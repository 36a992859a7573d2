"""What clusters and a demo on this machine add to the core."""

from mirror_lib.feature import Command, Feature

_COMMANDS = "mirror_lib.features.demo.commands"

FEATURE = Feature(
    name="demo",
    summary="Clusters, Spark and Airflow on this machine.",
    commands={
        "dev": Command(f"{_COMMANDS}.dev", "Run two local Kafka clusters, A and B.", after="features"),
        "demo": Command(
            f"{_COMMANDS}.demo",
            "Run a demo on this machine: brokers, input, Airflow, one flow, comparison of both sides.",
            after="dev",
        ),
    },
    imports=("mirror_lib.features.http_client", "mirror_lib.features.warm_spark"),
)
