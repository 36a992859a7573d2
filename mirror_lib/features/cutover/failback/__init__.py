"""Failback: to the source after a cutover, or after a disaster."""
