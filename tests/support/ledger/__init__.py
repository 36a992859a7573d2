"""Ledgers for tests: empty ones with their tables, the rows of weeks of work, and a PostgreSQL server for them."""
