"""The numbers that papers report. Gold and predictions enter as plain sequences, floats from 0 to 1 leave.

Gold comes first in every signature. No model and no tensor is known here. What has no value (a correlation with a
constant, the precision of nothing) is 0, so that every score can be written as JSON.
"""
