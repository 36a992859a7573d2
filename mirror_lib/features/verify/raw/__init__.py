"""Verification of records that are copied as they are."""
