"""The copy: one run of a flow and its parts.

Ask it to carry out a plan: claim, take over, transfer, commit. Spark, Airflow and commands call it, not the other way.
"""
