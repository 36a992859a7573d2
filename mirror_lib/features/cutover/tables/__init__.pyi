from .carriers import CarrierRow as CarrierRow
from .carriers import Carriers as Carriers
from .carriers import DIED as DIED
from .carriers import QuestionRow as QuestionRow
from .cutovers import Cutovers as Cutovers
from .cutovers import CutoverStepRow as CutoverStepRow
