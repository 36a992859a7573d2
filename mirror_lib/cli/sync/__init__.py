"""`mirror topics`, `configs`, `acls`, `groups` and `heartbeat`: plan, apply, status."""
