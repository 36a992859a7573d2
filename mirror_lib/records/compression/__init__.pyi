from .codecs import CodecError as CodecError
from .codecs import compress as compress
from .codecs import decompress as decompress
from .codecs import decompress_up_to as decompress_up_to
from .lz4_many import LaidOut as LaidOut
from .lz4_many import single_blocks as single_blocks
from .streaming import pieces as pieces
