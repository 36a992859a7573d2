from .dag import build_heartbeat_dags as build_heartbeat_dags
from .dag import heartbeat_dag_id as heartbeat_dag_id
from .tasks import check_heartbeats as check_heartbeats
from .tasks import emit as emit
from .tasks import EMITTED_KEY as EMITTED_KEY
