"""`./run affected`: select and run the tests that a change can touch."""
