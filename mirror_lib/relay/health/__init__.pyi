from .next_run import look_at_next_run as look_at_next_run
from .next_run import NextRun as NextRun
from .observation import FlowObserved as FlowObserved
from .observation import observe_flow as observe_flow
