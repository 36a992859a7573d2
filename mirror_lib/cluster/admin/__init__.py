"""Administration through librdkafka: topics, configs, ACLs, consumer groups, offsets."""
