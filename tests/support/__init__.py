"""What several tests share: clusters, topics and records."""
