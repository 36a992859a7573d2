"""Counts the lines of the product by package: code, docstrings, comments and blanks apart."""
