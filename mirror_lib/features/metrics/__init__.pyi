from .prometheus import CONTENT_TYPE as CONTENT_TYPE
from .prometheus import render_metrics as render_metrics
