"""`mirror gaps`, `position`, `map` and `clusters`: manual decisions of an operator."""
