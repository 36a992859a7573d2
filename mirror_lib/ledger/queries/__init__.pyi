from .copy_rounds import CopiedRound as CopiedRound
from .copy_rounds import FlowLag as FlowLag
from .group_columns import is_own as is_own
from .page import PageQueries as PageQueries
from .page import PARTITION_ORDERS as PARTITION_ORDERS
from .page import PartitionFilter as PartitionFilter
from .verdicts import Verdicts as Verdicts
from .verdicts import VerificationSummary as VerificationSummary
