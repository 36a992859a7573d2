"""Drivers that start at once: a driver host, deferred copies, an archive of Spark's classes."""
