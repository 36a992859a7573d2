"""`./run trials`: clean and damaged copies by several replicators, and what `mirror audit` finds in each."""
