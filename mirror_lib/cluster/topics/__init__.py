"""Internal topics in MM2's formats: positions, checkpoints, offset-syncs, heartbeats."""
