"""Queries over several tables, for rounds."""
