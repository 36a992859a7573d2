from .dag import build_flow_dag as build_flow_dag
from .form import TriggerChoices as TriggerChoices
from .replicate_operator import elapsed_seconds as elapsed_seconds
from .replicate_operator import ReplicateOperator as ReplicateOperator
from .replicate_operator import REPORT_KEY as REPORT_KEY
from .report import STEP_KEY as STEP_KEY
from .sync_tasks import is_repeated as is_repeated
