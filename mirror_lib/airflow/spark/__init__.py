"""Spark jobs as Airflow tasks: the connection, the submission, the pool, how a job ended."""
