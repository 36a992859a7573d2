"""Convert files of other replicators to files of this project."""
