"""Offsets of one side on the other, by the exact offset map: single ones, times, groups, checkpoint folders."""
