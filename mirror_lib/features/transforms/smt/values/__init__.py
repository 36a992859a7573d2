"""Connect's values: numbers, dates, texts as Java writes them."""
