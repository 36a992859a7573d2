"""Verification of records that transforms send to other topics."""
