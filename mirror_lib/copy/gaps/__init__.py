"""Gaps: records that a source has lost, and their resolutions by operators."""
