"""Tasks without a public set, learned from sets made of real text, each beside a simple rule.

`choice`: which of four sentences of an article comes next, beside the one that shares most words. `rank`: the sentence
that answers a question, beside BM25. `multi`: the types of entities in a sentence, beside the same ones always.
`swapped`: questions that the passage may not answer, beside always answering and never.
"""

from collections.abc import Sequence
from statistics import fmean

from experiments.cell import Cell
from experiments.differences import difference, told
from experiments.experiment import Column, Experiment, Rows, Setting
from experiments.task_cells import Exercise, Start, baseline_cell, minilm, own_cell, rows_of

OURS, RULE = "bertie", "simple rule"
CHOICE = Exercise("choice", "next sentence", "choice", "choice", 2500, 2, 15.0, num_test=400)
RANK = Exercise("rank", "answering sentence", "rank", "rank", 1500, 1, 4.0, num_test=400)
MULTI = Exercise("multi", "entity types", "classify", "multi", 3000, 3, 2.0, flags=("--multi",), has_dev=True)
SWAPPED = Exercise(
    "swapped", "swapped questions", "answer", "answer", 2000, 2, 8.0, length=256, num_test=500, has_dev=True
)
RATE, CHOICE_RATE = 1e-4, 2e-4  # so few steps want long ones
WITH_RULE = (CHOICE, RANK, MULTI)


def cells(setting: Setting) -> Sequence[Cell]:
    seeds = setting.seeds_or(0)
    found = []
    for exercise in (*WITH_RULE, SWAPPED):
        start = Start(minilm(), rate=CHOICE_RATE if exercise is CHOICE else RATE)
        shortened = exercise.shortened(setting)
        rows = rows_of(setting, shortened)
        found += [own_cell(OURS, shortened, rows, start, seed) for seed in seeds]
        found += [baseline_cell(RULE, shortened, rows)] if exercise in WITH_RULE else []
    return found


def conclude(rows: Rows) -> list[str]:
    sentences = []
    for exercise in WITH_RULE:
        found = difference(rows, OURS, RULE, exercise.set, exercise.measure)
        if found is not None:
            sentences.append(f"{exercise.title}: beside the simple rule {told(found)}.")
    figures = [one["figures"] for one in rows.get(OURS, ()) if "swapped_f1" in one["figures"]]
    if figures:
        names = ("swapped_f1", "swapped_always_answer", "swapped_never_answer")
        own, always, never = (fmean(one[name] for one in figures) for name in names)
        verdict = "beats" if own > max(always, never) else "DOES NOT BEAT"
        others = f"always answering ({always:.1%}) and never answering ({never:.1%})"
        sentences.append(f"{SWAPPED.title}: F1 {own:.1%} {verdict} {others}.")
    return sentences


EXPERIMENT = Experiment(
    about="all-MiniLM-L6-v2 fine-tuned on sets made of Wikipedia, SQuAD and CoNLL-2003, beside simple rules",
    cells=cells,
    columns=(
        CHOICE.column("accuracy", "accuracy"),
        RANK.column("MRR", "mrr", ".3f"),
        MULTI.column("F1", "f1"),
        SWAPPED.column("F1", "f1"),
        Column("without an answer", "swapped_no_answer_f1", ".1%"),
        Column("always answering", "swapped_always_answer", ".1%"),
        Column("never answering", "swapped_never_answer", ".1%"),
    ),
    conclude=conclude,
)
