"""Samples of a flow's records for previews of transforms."""
