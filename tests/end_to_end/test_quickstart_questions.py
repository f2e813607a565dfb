"""A whole quickstart on the documentation of this Python, asked the twenty questions: by a model that it trains from
scratch, by real weights beside it, and by real weights that it trains further. Nine minutes each on two quiet cores;
less is learned beside other work."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bertie.quickstart.finding import REAL, TRAINED, WORDS
from bertie.quickstart.results import Results, measure, open_finder
from bertie.quickstart.time_plan import Plan, QuickstartFolder

Run = Callable[..., CompletedProcess[str]]


def results_in(folder: Path, plan: Plan) -> Results:
    place = QuickstartFolder(folder)
    return measure(place, plan, open_finder(place))


@pytest.mark.slow
def test_a_model_of_minutes_answers_most_and_real_weights_nearly_all(
    minilm: Path, tmp_path: Path, run_bertie: Run
) -> None:
    done = run_bertie("quickstart", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    results = results_in(tmp_path / "out", Plan())
    assert results.num_found(TRAINED) >= 15
    assert results.num_found_alone(TRAINED, WORDS) >= 2
    assert results.num_found(REAL) >= 19


@pytest.mark.slow
def test_real_weights_trained_further_answer_nearly_all(minilm: Path, tmp_path: Path, run_bertie: Run) -> None:
    done = run_bertie("quickstart", "--base", minilm, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert results_in(tmp_path / "out", Plan(base=str(minilm))).num_found(TRAINED) >= 16
