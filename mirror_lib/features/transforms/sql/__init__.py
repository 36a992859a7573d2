"""Spark SQL of transforms, checked without Spark."""
