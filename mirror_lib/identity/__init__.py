"""What a stored fact is true of: clusters, source log, target log, copy, ledger.

Every reader of a stored position, map or checkpoint asks here whether it still holds. It writes nothing.
"""
