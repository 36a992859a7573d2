"""Connect's converters: bytes to values and back."""
