from .late_writes import accounted_for as accounted_for
from .tables import Backfills as Backfills
