"""Loops: flows whose records return to their cluster."""
