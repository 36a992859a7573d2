"""Retention and cost, computed from the ledger.

Ask it what past runs say. It asks no cluster.
"""
