"""Answers become figures, and every example says what it adds to them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.labelled_sets import write_rows
from experiments.task_scores import MEASURES, main, scored

from experiments import task_scores

Rows = list[dict[str, Any]]

TAGS = [
    {"words": ["A", "b"], "tags": ["B-PER", "O"]},
    {"words": ["C", "d", "e"], "tags": ["B-LOC", "I-LOC", "O"]},
]
QUESTIONS = [
    {"question": "q", "answers": [{"text": "the old bridge", "answer_start": 0}]},
    {"question": "r", "answers": [{"text": "Rome", "answer_start": 0}]},
]
CASES: dict[str, tuple[Rows, Rows, dict[str, float]]] = {
    "classify": (
        [{"label": "1"}, {"label": "0"}, {"label": "1"}, {"label": "0"}],
        [{"label": "1"}, {"label": "1"}, {"error": "empty"}, {"label": "0"}],
        {"accuracy": 0.5, "f1": 0.5},
    ),
    "multi": (
        [{"label": ["A", "B"]}, {"label": []}, {"label": ["A"]}],
        [{"labels": ["A"]}, {"labels": ["B"]}, {"labels": ["A"]}],
        {"f1": 2 * 2 / (3 + 3)},
    ),
    "similarity": (
        [{"score": "1.0"}, {"score": "2.5"}, {"score": "4"}],
        [{"score": 0.1}, {"score": 0.9}, {"score": 0.4}],
        {"spearman": 0.5, "pearson": float(np.corrcoef([1.0, 2.5, 4.0], [0.1, 0.9, 0.4])[0, 1])},
    ),
    "tag": (TAGS, [{"tags": ["B-PER", "O"]}, {"tags": ["B-LOC", "O", "O"]}], {"f1": 0.5}),
    "answer": (QUESTIONS, [{"text": "old bridge"}, {"text": "a new bridge"}], {"f1": 0.5, "exact_match": 0.5}),
    "choice": ([{"label": 2}, {"label": 0}], [{"choice": 2}, {"choice": 1}], {"accuracy": 0.5}),
    "rank": (
        [{"query": query, "relevance": int(number == 0)} for query in "pq" for number in range(3)],
        [{"score": score} for score in (3.0, 2.0, 1.0, 1.0, 2.0, 0.0)],
        {"mrr": 0.75},
    ),
}


@pytest.mark.parametrize("measure", CASES)
def test_figures_are_those_of_the_metrics(measure: str) -> None:
    rows, answers, expected = CASES[measure]
    found = scored("a_set", measure, rows, answers)
    assert found["figures"] == {f"a_set_{name}": pytest.approx(value) for name, value in expected.items()}
    examples = np.array(found["examples"]["a_set"])
    main_figure = MEASURES[measure].main
    assert MEASURES[measure].score(examples) == pytest.approx(expected[main_figure])
    assert json.loads(json.dumps(found)) == found


def test_what_never_and_always_answering_would_score() -> None:
    rows: Rows = [QUESTIONS[1], {"question": "s", "answers": []}, {"question": "t", "answers": []}]
    nbest = [{"text": "Rome"}]
    answers: Rows = [{"text": "Rome", "nbest": nbest}, {"text": "", "nbest": nbest}, {"text": "Rome", "nbest": nbest}]
    figures = scored("s", "answer", rows, answers)["figures"]
    assert figures["s_f1"] == pytest.approx(2 / 3)
    assert figures["s_always_answer"] == pytest.approx(1 / 3)
    assert figures["s_never_answer"] == pytest.approx(2 / 3)


def test_a_missing_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="argument"):
        scored("s", "classify", [{"label": "1"}, {"label": "1"}], [{"label": "1"}])


@pytest.mark.parametrize(("told", "fails"), [(0.5, False), (0.6, True)])
def test_what_evaluate_says_must_agree(
    told: float, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, answers, _ = CASES["choice"]
    write_rows(tmp_path / "rows.jsonl", rows)
    write_rows(tmp_path / "answers.jsonl", answers)
    monkeypatch.setattr(task_scores, "evaluated", lambda model, rows: {"accuracy": told})
    files = ["--rows", str(tmp_path / "rows.jsonl"), "--answers", str(tmp_path / "answers.jsonl")]
    words = ["s", "--measure", "choice", *files, "--model", "m", "--out", str(tmp_path / "work" / "scores.json")]
    if fails:
        with pytest.raises(SystemExit, match="bertie evaluate says accuracy"):
            main(words)
    else:
        main(words)
    assert (tmp_path / "work" / "scores.json").exists() == (not fails)
