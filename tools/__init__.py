"""Tools of the project itself: nothing of the product imports them."""
