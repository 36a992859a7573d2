"""`./run bench idle`: the cost of flows without records, and the delay of new ones."""
