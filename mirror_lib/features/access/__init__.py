"""Rights on both clusters: what each task needs, and the commands that grant it. Pure: it grants nothing itself."""
