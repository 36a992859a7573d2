from .chain import SmtChain as SmtChain
from .model import RegexRouter as RegexRouter
from .model import SettingProblem as SettingProblem
from .settings import parse_settings as parse_settings
