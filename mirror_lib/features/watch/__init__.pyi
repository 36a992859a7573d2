from .poller import FilePoller as FilePoller
from .poller import Start as Start
