"""The copy: one run of a flow and its parts.

Ask it for a plan, or to carry out a run: claim, take over, copy, commit. Spark, Airflow and commands call it, not the
other way.
"""
