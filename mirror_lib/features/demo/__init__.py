"""Clusters, Spark and Airflow on this machine, for `mirror dev` and the demo."""
