from .after_disaster import apply_return as apply_return
from .failback import ensure_topics as ensure_topics
from .failback import prepare_failback as prepare_failback
from .failback import why_no_failback as why_no_failback
from .return_plan import plan_return as plan_return
from .return_plan import ReturnPlan as ReturnPlan
