"""The ledger: runs, positions, offset map, gaps, in a SQL database; features add tables of their own.

Ask it to store and to read rows. It decides nothing, and never talks to Kafka.
"""
