"""The page for tests: without Airflow, without a server, and in a browser."""
