from .findings import Place as Place
from .findings import RoutedFindings as RoutedFindings
from .findings import TargetDigests as TargetDigests
from .judge import judge_routed as judge_routed
from .routed_rows import Elsewhere as Elsewhere
from .routed_rows import FoundRow as FoundRow
from .target_digests import DigestsJob as DigestsJob
from .target_digests import read_target_digests as read_target_digests
