from .connect_transforms import CONVERTERS as CONVERTERS
from .connect_transforms import FLOW_PREFIXES as FLOW_PREFIXES
from .connect_transforms import TRANSFORMS as TRANSFORMS
from .flow_transforms import describe_transforms as describe_transforms
from .flow_transforms import transform_settings as transform_settings
from .flow_transforms import TransformsReader as TransformsReader
