"""The page "Replication" for an Airflow whose plugins folder this is.

Where the project is installed as a package, its entry point brings the page, and nothing is needed here.
"""

from importlib.metadata import entry_points

if not any(
    found.value.startswith("mirror_lib.features.page.plugin:") for found in entry_points(group="airflow.plugins")
):
    from mirror_lib.features.page import ReplicationPlugin  # noqa: F401
