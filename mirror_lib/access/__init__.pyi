from .commands import acl_commands as acl_commands
from .model import AccessTask as AccessTask
from .model import RequiredAccess as RequiredAccess
from .required import required_access as required_access
from .required import scheduled_access as scheduled_access
