"""Changes to records between the source and the target."""
