"""The properties file: syntax, keys, typed values, and every problem with its line."""
