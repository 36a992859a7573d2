"""`mirror config`: check, explain, list and import configuration."""
