"""What Airflow sees of the project: DAGs, operators and tasks. Nothing else in `mirror_lib` imports Airflow."""
