"""Comparison of this project's copy with MirrorMaker 2 on the same machine, in one run, on the same brokers."""
