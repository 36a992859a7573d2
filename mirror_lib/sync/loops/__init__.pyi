from .flow import check_loops as check_loops
from .flow import namesake_notes as namesake_notes
from .flow import refuse_loops as refuse_loops
from .flow import refuse_own_copies as refuse_own_copies
from .ledger import refuse_ledger_loops as refuse_ledger_loops
