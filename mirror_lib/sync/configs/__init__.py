"""Topic configs: planned, applied."""
