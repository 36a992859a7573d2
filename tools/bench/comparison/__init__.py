"""`./run bench`: copies by each copier, checked against their source. Other benches share results and goals."""
