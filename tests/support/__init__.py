"""What several tests share: clusters, topics, flows and whole runs are here, all else is in a folder of its subject."""
