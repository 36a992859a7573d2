from .compare_rows import compare_bin as compare_bin
from .compare_rows import find_bin as find_bin
from .model import first_refusal as first_refusal
from .model import numbered_ranges as numbered_ranges
from .model import NumberedRange as NumberedRange
from .model import RefusedRecord as RefusedRecord
from .model import RowVerifyJob as RowVerifyJob
from .row_source import read_bin as read_bin
