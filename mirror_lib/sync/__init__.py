"""Sync steps of a flow, in addition to records: topics, configs, ACLs, groups, heartbeats.

Ask each step for its plan, then to apply it. No step copies records.
"""
