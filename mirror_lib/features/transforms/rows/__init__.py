"""Rows that are passed between the stages of a Spark job."""
