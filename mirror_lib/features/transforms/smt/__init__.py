"""Kafka Connect's single message transforms (KIP-66), so that those of an MM2 properties file keep working.

`settings` parses them, `chain` runs them, `converters` converts between bytes and values. The semantics are those of
the Java classes in Kafka 4.3 (`connect/transforms`, `connect/api`, `connect/json`).
"""
