"""Trigger forms and the conf of DAG runs: fields, values and their validation."""
