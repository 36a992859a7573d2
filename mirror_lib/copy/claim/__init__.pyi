from .claim import chains_of as chains_of
from .claim import name_positions as name_positions
from .claim import open_partitions as open_partitions
from .claim import store_first_positions as store_first_positions
from .hidden_positions import uncover_positions as uncover_positions
from .rewound_syncs import rewind_all_syncs as rewind_all_syncs
from .rewound_syncs import rewind_syncs as rewind_syncs
from .unknown_records import with_found_records as with_found_records
