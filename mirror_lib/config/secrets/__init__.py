"""Secrets: config providers, lookups, and masking."""
