from .flow import AclSync as AclSync
from .flow import apply_flow_acls as apply_flow_acls
from .flow import plan_flow_acls as plan_flow_acls
from .flow import sync_flow_acls as sync_flow_acls
from .plan import binding_of as binding_of
