from .flow_frame import flow_command as flow_command
from .flow_frame import FlowCommand as FlowCommand
from .flow_options import capped_table as capped_table
from .flow_options import megabytes as megabytes
from .flow_options import TopicsOption as TopicsOption
from .frame import begin_with as begin_with
from .output import Output as Output
from .output import Progress as Progress
