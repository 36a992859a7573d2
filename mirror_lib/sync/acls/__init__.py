"""ACLs: read, rewritten, planned, applied."""
