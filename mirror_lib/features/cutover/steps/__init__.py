"""The steps of a cutover, each with the gates that it needs: before the freeze, the cut, the switch, the rollback."""
