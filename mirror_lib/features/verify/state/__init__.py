"""Comparing compacted topics by state: the newest record of each key on both sides, whatever compaction has removed."""
