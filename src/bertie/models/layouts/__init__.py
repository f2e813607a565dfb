"""Other people's model folders: for each architecture, its config and its names of weights, as two-way tables.

`LAYOUTS` is the whole list, by the `model_type` of config.json; see `hf_layout` for which of them writes a recipe.
"""

from bertie.models.layouts import albert, bert, distilbert, electra, modernbert, roberta, xlm, xlnet
from bertie.models.layouts.layout import HFLayout

LAYOUTS: dict[str, HFLayout] = {
    "bert": bert.LAYOUT,
    "roberta": roberta.layout("roberta"),
    "xlm-roberta": roberta.layout("xlm-roberta"),
    "camembert": roberta.layout("camembert"),
    "albert": albert.LAYOUT,
    "electra": electra.LAYOUT,
    "distilbert": distilbert.LAYOUT,
    "xlm": xlm.LAYOUT,
    "xlnet": xlnet.LAYOUT,
    "modernbert": modernbert.LAYOUT,
}

__all__ = ["LAYOUTS", "HFLayout"]
