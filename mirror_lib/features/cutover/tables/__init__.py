"""The tables of cutovers, their rows, and what is read from and written to each."""
