"""Faults with real processes: copies under kills, cuts and zombies, checked record by record."""
