"""Planning a verification: which ranges are compared, by which task."""
