"""Offsets: the map from source to target, offset-syncs and checkpoints.

Ask it where a source offset is on the target, exactly or by MM2's rule. Pure arithmetic: it reads no topic and no
ledger.
"""
