"""Airflow's connections and variables as values of the properties file (`mirror_lib.AirflowSecretProvider`)."""
