"""Tests the whole flow with every login mechanism of Kafka: `./run security`."""
