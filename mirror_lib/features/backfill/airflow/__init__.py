"""The DAG of backfills: define, estimate, copy."""
