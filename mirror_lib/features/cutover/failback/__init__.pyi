from .after_disaster import apply_return as apply_return
from .failback import ensure_topics as ensure_topics
from .failback import prepare_way_back as prepare_way_back
from .failback import why_no_way_back as why_no_way_back
from .return_plan import plan_return as plan_return
from .return_plan import ReturnPlan as ReturnPlan
