"""Schema ids of records, looked up on one registry and registered on the other."""
