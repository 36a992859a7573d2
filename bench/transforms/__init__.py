"""`python -m bench.transforms`: copies through transforms."""
