"""Changes to records on their way: what is done to them between the source and the target."""
