"""`mirror run`: one run of a flow, in this process or by Spark."""
