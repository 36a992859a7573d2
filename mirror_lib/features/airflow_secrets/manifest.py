"""What the provider of Airflow's connections and variables adds to the core."""

from mirror_lib.feature import Feature, Hook

FEATURE = Feature(
    name="airflow_secrets",
    summary="Values from Airflow's connections and variables (`${airflow:...}`).",
    hooks={Hook.AIRFLOW_SECRETS: "mirror_lib.features.airflow_secrets.provider:AirflowSecretProvider"},
)
