from .topics import show_topics as show_topics
