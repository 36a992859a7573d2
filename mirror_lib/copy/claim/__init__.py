"""Claiming partitions: fence the earlier writer, and find the start."""
