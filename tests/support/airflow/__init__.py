"""Airflow for tests: homes with a migrated database, its processes, and DAGs that run without its servers."""
