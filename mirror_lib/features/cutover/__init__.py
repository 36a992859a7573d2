"""Cutovers and the return after a disaster: steps, gates, states, reports."""
