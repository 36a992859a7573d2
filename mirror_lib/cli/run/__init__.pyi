from .command import copy_and_report as copy_and_report
from .spark_submit import Job as Job
from .spark_submit import RunFiles as RunFiles
from .spark_submit import running_job as running_job
