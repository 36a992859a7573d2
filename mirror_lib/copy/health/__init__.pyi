from .after_run import ledger_tidied_up as ledger_tidied_up
from .after_run import observe_after_run as observe_after_run
from .next_run import FlowForecast as FlowForecast
from .next_run import forecast_of as forecast_of
from .next_run import look_at_next_run as look_at_next_run
from .next_run import NextRun as NextRun
from .next_run import PartitionForecast as PartitionForecast
