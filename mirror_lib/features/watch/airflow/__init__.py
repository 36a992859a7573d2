"""The schedule with an asset, and the trigger that Airflow's triggerer runs."""
