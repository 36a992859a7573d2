"""An audit of any replication between two clusters: reads both, needs no file, no ledger and no map."""
