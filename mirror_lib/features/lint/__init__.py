"""Checks of a properties file by command: every problem in one pass, corrections, and the reference of all keys."""
