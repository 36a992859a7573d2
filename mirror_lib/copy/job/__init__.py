"""The Spark job of a run: its arguments, its command line, its report."""
