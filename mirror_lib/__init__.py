"""Replication between Kafka clusters in scheduled, bounded batches. See `docs/architecture.md`."""

__version__ = "0.1.0"
