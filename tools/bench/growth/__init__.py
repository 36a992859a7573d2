"""`./run bench growth`: the cost of a run by the amount of what it copies."""
