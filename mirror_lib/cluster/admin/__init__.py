"""Administration through librdkafka: topics, configs, ACLs, consumer groups, offsets."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "client": ["ClusterAdmin", "ConfigChange", "ConfigOperation", "OffsetFact", "PerTopic"],
        "groups": ["CommittedOffset", "GroupActiveError", "GroupAdmin", "GroupKind", "GroupState", "ListedGroup"],
        "librdkafka_errors": ["ClientErrors"],
        "model": ["ConfigEntry", "ConfigOrigin", "OffsetSpec", "TopicConfigs", "TopicDescription", "TopicSpec"],
        "results": ["batches"],
    },
)
