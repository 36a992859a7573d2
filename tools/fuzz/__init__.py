"""Damaged and invented input for all external inputs: every parser returns, or fails with its own error."""
