from .converters import decode as decode
from .converters import encode as encode
