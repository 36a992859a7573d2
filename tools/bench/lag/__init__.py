"""`./run bench lag`: the lag of records under a steady load."""
