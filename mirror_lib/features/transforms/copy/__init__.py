"""Copies of transformed records: rows to batches, in transactions."""
