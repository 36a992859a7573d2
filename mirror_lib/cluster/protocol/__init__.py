"""Kafka's requests and responses, encoded and decoded. Pure."""
