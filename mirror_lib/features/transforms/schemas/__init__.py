"""Schema registries: schema ids in records, their schemas, and schemas that the target's registry lacks."""
