"""`python -m bench.cutover`: a cutover on live traffic."""
