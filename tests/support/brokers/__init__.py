"""Brokers of particular kinds, and a cluster in memory; `tests.support.clusters` starts the ordinary ones."""
