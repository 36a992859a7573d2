"""The raw client: fetches and produces batches unchanged, with producer ids and transactions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "backoff": ["Backoff", "may_pass", "without_frames"],
        "client": ["FetchRequestPartition", "FetchedPartition", "ProducedPartition", "RawClient", "open_clients"],
        "connection": ["Buffer"],
        "describe_producers": ["described_producers", "producer_states"],
        "log_ends": ["latest_offsets", "list_topics"],
        "leaders": ["by_leader"],
        "login_first": ["log_in_first"],
        "open_transactions": ["HiddenRecords", "describe_hidden"],
        "partition_client": ["Patience"],
        "producer_ids": ["ProducerIdentity"],
        "timestamps": ["first_timestamps"],
    },
)
