"""Schema registries: the ids that records carry, what they stand for, and what the target's registry lacks."""
