"""Consumer groups: offsets translated and written."""
