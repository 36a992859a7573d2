"""The steps of a cutover: before the freeze, the cut, the switch, the rollback."""
