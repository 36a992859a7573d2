"""How fast a copy could be at most: fetching alone and producing alone."""
