from .lost import find_lost_deletions as find_lost_deletions
from .plan import plan_state as plan_state
from .run import compare_by_state as compare_by_state
