from .facts import select_groups as select_groups
from .flow import apply_flow_groups as apply_flow_groups
from .flow import GroupSync as GroupSync
from .flow import plan_flow_groups as plan_flow_groups
from .flow import sync_flow_groups as sync_flow_groups
from .plan import GroupPlan as GroupPlan
from .plan import GroupRow as GroupRow
from .remarks import more_partitions as more_partitions
