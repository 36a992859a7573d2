from .expressions import check_column as check_column
from .expressions import check_filter as check_filter
from .expressions import check_schema as check_schema
from .expressions import check_select as check_select
from .expressions import CheckedSql as CheckedSql
from .select_text import carry_columns as carry_columns
from .spark_functions import INFLUENCES as INFLUENCES
from .text import Finding as Finding
