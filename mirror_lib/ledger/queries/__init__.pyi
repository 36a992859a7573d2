from .copy_rounds import CopiedRound as CopiedRound
from .copy_rounds import FlowLag as FlowLag
from .metrics import MetricsQueries as MetricsQueries
