from .command import copy_by_job as copy_by_job
from .command import show_report as show_report
from .spark_submit import Job as Job
from .spark_submit import RunFiles as RunFiles
from .spark_submit import running_job as running_job
