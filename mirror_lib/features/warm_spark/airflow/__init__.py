"""Drivers of a driver host as Airflow tasks: attended by the task, or by a trigger while the task is deferred."""
