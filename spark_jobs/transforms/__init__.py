"""Copies and verifications through transforms: on the driver as DataFrames, on the executors as tasks."""
