"""`mirror dev` and `mirror demo`."""
