from .forecast import FlowForecast as FlowForecast
from .forecast import forecast_plan as forecast_plan
from .forecast import look_at_next_run as look_at_next_run
from .forecast import NextRun as NextRun
from .observation import FlowObserved as FlowObserved
from .observation import observe_flow as observe_flow
