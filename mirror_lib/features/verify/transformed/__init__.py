"""Verification of transformed records: made again and compared."""
