"""What tests put into logs: record batches, whole logs, values with schemas, and maps of their offsets."""
