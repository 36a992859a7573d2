"""Features: each folder is one, with all that it adds. The core imports none of them."""
