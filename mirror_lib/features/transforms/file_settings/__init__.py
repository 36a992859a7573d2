"""Transforms as set in a file, the project's own and Kafka Connect's."""
