"""Planning a round: facts of both clusters in, ranges and tasks out."""
