"""Owners of the topics that flows copy."""
