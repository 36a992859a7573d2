"""The settings: names, types, defaults and meaning, declared once."""
