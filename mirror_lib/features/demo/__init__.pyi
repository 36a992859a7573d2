from .demo import DemoOutcome as DemoOutcome
from .demo import run_demo as run_demo
from .demo import Steps as Steps
from .demo import stop_demo as stop_demo
from .jars import FetchProgress as FetchProgress
from .stack import ClusterStatus as ClusterStatus
