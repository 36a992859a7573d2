"""Comparing one range of two logs through the offset map. Pure."""
