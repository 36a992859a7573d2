"""`./run bench cutover`: a cutover on live traffic."""
