"""Scores answers to questions: exact match and F1, as the scripts of SQuAD 2.0 and CMRC 2018 compute them.

A question has any number of gold answers and the best of them counts; none at all means that it cannot be answered,
and then only the empty prediction is right.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

import numpy as np

Golds = Sequence[str]  # the gold answers of one question
Language = Literal["english", "chinese"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")

# As CMRC 2018 lists it; what it leaves out (an ASCII comma, a full stop) counts as part of the answer.
_CHINESE_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_IDEOGRAPH = re.compile("([\u4e00-\u9fa5])")
# How text between ideographs is cut into words, in this order: the rules of the Penn Treebank that matter in an answer.
_TREEBANK = (
    (re.compile(r"[;@#$%&?!()\[\]{}<>\"«»“”‘’„–—]|\.{2,}"), r" \g<0> "),
    (re.compile(r",(?!\d)"), " , "),  # "1,000" is one number
    (re.compile(r"(?<=[^.])\.(?=[\s)\]}>\"'»”’]*$)"), " . "),  # a full stop counts at the end only: "u.s.a"
    (re.compile(r"(?<=[^' ])(n't|'s|'m|'d|'ll|'re|'ve|')(?= |$)"), r" \1 "),
)


def normalize(answer: str) -> str:
    """Lower case, without ASCII punctuation and the articles a, an, the; words apart by single spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(golds: Golds, predicted: str) -> float:
    return _best(golds, predicted, normalize, lambda gold, answer: float(gold == answer))


def f1(golds: Golds, predicted: str) -> float:
    """Of the words that the two answers share, in any order."""
    return _best(golds, predicted, normalize, lambda gold, answer: _shared_words(gold.split(), answer.split()))


def chinese_exact_match(golds: Golds, predicted: str) -> float:
    return _best(golds, predicted, normalize_chinese, lambda gold, answer: float(gold == answer))


def chinese_f1(golds: Golds, predicted: str) -> float:
    """Of the longest stretch that the two answers have in common, in ideographs and words."""
    return _best(golds, predicted, normalize_chinese, lambda gold, answer: _shared_stretch(*map(units, (gold, answer))))


def normalize_chinese(answer: str) -> str:
    """Lower case, without the punctuation that CMRC 2018 lists."""
    return answer.lower().strip().translate(_CHINESE_PUNCTUATION)


def units(answer: str) -> list[str]:
    """Each ideograph, and the words of the text between them."""
    found: list[str] = []
    for part in _IDEOGRAPH.split(answer):
        for pattern, replacement in _TREEBANK:
            part = pattern.sub(replacement, part)
        found += part.split()
    return found


def _best(golds: Golds, predicted: str, prepare: Callable[[str], str], score: Callable[[str, str], float]) -> float:
    # A gold answer of which nothing is left, such as "The", says no more than none at all.
    prepared = [gold for gold in map(prepare, golds) if gold]
    answer = prepare(predicted)
    if not prepared or not answer:
        return float(not prepared and not answer)
    return max(score(gold, answer) for gold in prepared)


def _shared_words(gold: list[str], predicted: list[str]) -> float:
    shared = sum((Counter(gold) & Counter(predicted)).values())
    return 2 * shared / (len(gold) + len(predicted))


def _shared_stretch(gold: list[str], predicted: list[str]) -> float:
    shared = SequenceMatcher(None, gold, predicted, autojunk=False).find_longest_match().size
    return 2 * shared / max(len(gold) + len(predicted), 1)


SCORES: dict[Language, tuple[Callable[[Golds, str], float], Callable[[Golds, str], float]]] = {
    "english": (exact_match, f1),
    "chinese": (chinese_exact_match, chinese_f1),
}


def answer_scores(gold: Sequence[Golds], predicted: Sequence[str], language: Language = "english") -> dict[str, float]:
    """Exact match and F1; where some questions have no answer, also of the two kinds of questions apart."""
    exact, shared = (
        np.array([score(golds, answer) for golds, answer in zip(gold, predicted, strict=True)])
        for score in SCORES[language]
    )
    has_answer = np.array([bool(golds) for golds in gold], dtype=np.bool_)
    parts = {"": np.ones_like(has_answer)}
    if not has_answer.all():
        parts |= {"has_answer_": has_answer, "no_answer_": ~has_answer}
    columns = {"exact_match": exact, "f1": shared}
    return {
        prefix + name: float(column[part].mean()) if part.any() else 0.0
        for prefix, part in parts.items()
        for name, column in columns.items()
    }


class NoAnswerThreshold(NamedTuple):
    value: float  # a question is left unanswered where its null score difference is above this
    score: float  # the mean score of all questions with this threshold


def best_threshold(
    null_differences: Sequence[float] | np.ndarray,
    scores: Sequence[float] | np.ndarray,
    has_answer: Sequence[bool] | np.ndarray,
) -> NoAnswerThreshold:
    """The threshold that gives the best mean score over questions with and without an answer.

    `null_differences` [N]: how much better "no answer" scored than the best answer; `scores` [N]: exact match or F1 of
    the best answer, as if every question were answered. Unlike in the SQuAD script, questions of equal difference are
    answered together or not at all, and the threshold lies halfway between two differences. Among equally good ones
    the nearest to 0 is taken.
    """
    differences = np.asarray(null_differences, dtype=np.float64)
    answered, abstained = np.asarray(scores, dtype=np.float64), ~np.asarray(has_answer, dtype=np.bool_)
    if not len(differences):
        return NoAnswerThreshold(0.0, 0.0)
    order = np.argsort(differences, kind="stable")
    differences = differences[order]
    gains = np.cumsum((answered - abstained)[order])
    ends = np.flatnonzero(np.append(differences[1:] > differences[:-1], True))
    highest, next_higher = differences[ends], np.append(differences[ends[:-1] + 1], differences[-1] + 2.0)
    halfway = (highest + next_higher) / 2
    thresholds = np.append(differences[0] - 1.0, np.where(halfway < next_higher, halfway, highest))
    totals = abstained.sum() + np.append(0.0, gains[ends])
    equals = np.flatnonzero(totals == totals.max())
    best = int(equals[np.argmin(np.abs(thresholds[equals]))])
    return NoAnswerThreshold(float(thresholds[best]), float(totals[best]) / len(differences))
