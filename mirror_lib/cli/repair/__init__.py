"""`mirror gaps`, `position`, `map` and `clusters`: what an operator decides by hand."""
