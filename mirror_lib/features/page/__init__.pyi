from .plugin import ReplicationPlugin as ReplicationPlugin
