from .flow import AclSync as AclSync
from .flow import apply_flow_acls as apply_flow_acls
from .flow import plan_flow_acls as plan_flow_acls
from .flow import sync_flow_acls as sync_flow_acls
from .staged import release_acls as release_acls
from .staged import revoke_acls as revoke_acls
from .staged import StagedAclChange as StagedAclChange
