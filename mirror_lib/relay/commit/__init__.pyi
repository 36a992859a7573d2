from .commit import commit_round as commit_round
from .commit import segment_rows as segment_rows
from .decided_positions import store_decided as store_decided
from .progress import RoundProgress as RoundProgress
from .rewound_syncs import rewind_syncs as rewind_syncs
from .round_metrics import expectation as expectation
from .round_metrics import RoundAccount as RoundAccount
from .round_metrics import Step as Step
