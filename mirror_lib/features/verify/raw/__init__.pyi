from .local import BINS_PER_PROCESS as BINS_PER_PROCESS
from .local import cores as cores
from .local import run_locally as run_locally
from .task import verify_bin as verify_bin
