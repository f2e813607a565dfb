"""Predicts whether the second segment follows the first (next-sentence prediction). BERT, section 3.1, task 2."""

from typing import Literal

from bertie.objectives.pair_relation import PairRelation


class NextSentence(PairRelation):
    """`partner` is 0 for the next segment, 1 for one from another document."""

    kind: Literal["next-sentence"] = "next-sentence"
