"""A family from a plugin: BERT in which every second layer sees only its neighbours, with masked spans."""

from bertie.data.masking import Spans
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.visibility import Full, Window
from bertie.objectives.masked_lm import MaskedLM


def narrow(size: Size = SIZES["base"], vocab_size: int = 30_522) -> Recipe:
    changes = {
        "name": "narrow",
        "encoder.stack.visibility": (Window(reach=8), Full()),
        "encoder.pooler": None,
        "objectives": (MaskedLM(choose=Spans()),),
    }
    return bert(size, vocab_size).changed(changes)


RECIPES = {"narrow": narrow}
