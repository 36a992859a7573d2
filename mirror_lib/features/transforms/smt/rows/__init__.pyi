from .model import MadeRows as MadeRows
from .model import RefusedRowError as RefusedRowError
from .stage import SmtRows as SmtRows
