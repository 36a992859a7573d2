"""One copy task: fetch from the source's leaders, produce to the target's, in order, once."""
