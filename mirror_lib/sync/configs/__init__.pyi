from .flow import apply_flow_configs as apply_flow_configs
from .flow import ConfigSync as ConfigSync
from .flow import plan_flow_configs as plan_flow_configs
from .flow import sync_flow_configs as sync_flow_configs
from .plan import ConfigDrift as ConfigDrift
from .plan import ConfigRulebook as ConfigRulebook
