"""Model folders of `transformers`: for each architecture, how its config and its names of weights are read and written.

`LAYOUTS` is the whole list, by the `model_type` of config.json; `hf_layout` finds the one that expresses a recipe.
"""

from bertie.models.layouts import albert, bert, distilbert, electra, gpt, modernbert, roberta, xlm, xlnet
from bertie.models.layouts.hf_layout import HFLayout

LAYOUTS: dict[str, HFLayout] = {
    "bert": bert.LAYOUT,
    **roberta.LAYOUTS,
    "albert": albert.LAYOUT,
    "electra": electra.LAYOUT,
    "distilbert": distilbert.LAYOUT,
    "xlm": xlm.LAYOUT,
    "xlnet": xlnet.LAYOUT,
    "modernbert": modernbert.LAYOUT,
    **gpt.LAYOUTS,
}

__all__ = ["LAYOUTS", "HFLayout"]
