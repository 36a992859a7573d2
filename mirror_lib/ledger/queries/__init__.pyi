from .copy_rounds import CopiedRound as CopiedRound
from .copy_rounds import FlowLag as FlowLag
