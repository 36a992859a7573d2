from .findings import Place as Place
from .findings import RoutedFindings as RoutedFindings
from .findings import Standing as Standing
from .judge import judge_routed as judge_routed
from .routed_rows import Elsewhere as Elsewhere
from .routed_rows import FoundRow as FoundRow
from .target_digests import read_standing as read_standing
from .target_digests import StandingJob as StandingJob
