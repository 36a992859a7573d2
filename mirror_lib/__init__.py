"""Replication between Kafka clusters in scheduled, bounded batches. `docs/architecture.md` is the map."""

__version__ = "0.1.0"
