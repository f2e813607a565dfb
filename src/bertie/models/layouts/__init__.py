"""Other people's model folders: for each architecture, its config and its names of weights, as two-way tables.

`LAYOUTS` is the whole list, by the `model_type` of config.json.
"""

from bertie.models.layouts import bert
from bertie.models.layouts.layout import HFLayout

LAYOUTS: dict[str, HFLayout] = {"bert": bert.LAYOUT}

__all__ = ["LAYOUTS", "HFLayout"]
