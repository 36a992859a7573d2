"""The page "Replication" inside Airflow: what the ledger knows, as pictures, tables, metrics and a few actions."""
