"""Flows in an Airflow that does not have this package: a DAG file, its description, and the tasks it starts."""
