"""The machine that measures, and what its processes cost."""
