from .copy_rounds import CopiedRound as CopiedRound
from .copy_rounds import FlowLag as FlowLag
from .metrics import MetricsQueries as MetricsQueries
from .page import PageQueries as PageQueries
from .page import PARTITION_ORDERS as PARTITION_ORDERS
from .page import PartitionFilter as PartitionFilter
from .verdicts import Verdicts as Verdicts
from .verdicts import VerificationSummary as VerificationSummary
