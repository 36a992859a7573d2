"""Backfills: bounded copies next to a flow."""
