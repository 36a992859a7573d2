"""Tests the whole flow between brokers of different versions of Kafka: `./run versions`."""
