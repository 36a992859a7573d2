"""Verification: both logs compared record by record, or by state."""
