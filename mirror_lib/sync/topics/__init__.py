"""Topics of the target: created, grown, waited for."""
