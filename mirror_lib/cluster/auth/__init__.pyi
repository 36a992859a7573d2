from .cloud_hosts import CloudHosts as CloudHosts
from .jaas import parse_jaas as parse_jaas
from .kerberos import missing_for_kerberos as missing_for_kerberos
from .login_check import login_errors as login_errors
from .sasl import OAuthLogin as OAuthLogin
from .security import Security as Security
from .security_properties import read_security as read_security
