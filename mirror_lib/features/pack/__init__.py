"""The Python packages of Spark's executors, packed from this installation."""
