"""Heartbeats: emitted and checked."""
