"""Spark for tests: frames, submitted jobs, drivers that stand in for its own, and code that runs in its workers."""
