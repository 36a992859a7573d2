"""Commands of the repairs."""
