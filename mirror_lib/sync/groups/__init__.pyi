from .flow import apply_flow_groups as apply_flow_groups
from .flow import GroupSync as GroupSync
from .flow import plan_flow_groups as plan_flow_groups
from .flow import sync_flow_group_offsets as sync_flow_group_offsets
from .flow import translate_flow_offsets as translate_flow_offsets
from .plan import GroupPlan as GroupPlan
from .plan import GroupRow as GroupRow
from .rules import select_groups as select_groups
