"""The page in Airflow, which finds it by an entry point of its own: nothing is added to commands and DAGs."""

from mirror_lib.feature import Feature

FEATURE = Feature(
    name="page",
    summary="The page Replication in Airflow: flows, lag, gaps and actions, from the ledger.",
    imports=("mirror_lib.features.cutover", "mirror_lib.features.metrics", "mirror_lib.features.verify"),
)
