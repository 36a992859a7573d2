"""Configuration: MM2's properties file with the project's own settings, as typed flows.

Ask it for the flows of a file, with every problem of the file, and where a value comes from. It never asks a cluster.
"""
