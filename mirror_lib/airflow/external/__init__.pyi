from .stand_ins import RetryDecision as RetryDecision
from .stand_ins import RetryPolicy as RetryPolicy
