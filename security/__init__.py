"""Tries the whole flow by every way to log in that Kafka has: `./run security`."""
