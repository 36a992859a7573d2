"""`./run bench transforms`: copies through transforms."""
