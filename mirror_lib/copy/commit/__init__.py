"""After a round: positions, offset-syncs, the ledger, progress."""
