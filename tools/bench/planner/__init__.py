"""`./run bench planner`: plans of many partitions, mostly on simulated clusters."""
