from .broker_limits import version_limits as version_limits
from .broker_limits import VersionLimit as VersionLimit
from .connection import Connection as Connection
from .leader_wait import LeaderWait as LeaderWait
