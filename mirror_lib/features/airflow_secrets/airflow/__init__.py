"""Lookups by Airflow's own calls, in its tasks."""
