"""The records of a campaign: written with stamps, read back by an independent reader, and checked."""
