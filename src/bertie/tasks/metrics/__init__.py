"""The metrics that papers report, from 0 to 1. They take plain sequences of gold and predictions.

Gold comes first in every signature. No model and no tensor is known here. What has no value (a correlation with a
constant, the precision of nothing) is 0, so that every score can be written as JSON.
"""
