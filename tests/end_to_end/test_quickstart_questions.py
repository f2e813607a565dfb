"""A whole quickstart on the documentation of this Python, asked the twenty questions: by a model that it trained from
nothing, and by real weights. Ten minutes each on two cores that do nothing else; less is learned beside other work."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bertie.quickstart.plan import Place, Plan
from bertie.quickstart.results import open_finder, results

Run = Callable[..., CompletedProcess[str]]


def asked(folder: Path, plan: Plan) -> tuple[int, int]:
    """Questions that are answered by meaning, and those of them that words miss in the same texts."""
    place = Place(folder)
    found = results(place, plan, open_finder(place))
    return found.num_found[0], found.num_found_alone[0]


@pytest.mark.slow
def test_a_model_of_minutes_answers_most_and_some_that_words_miss(tmp_path: Path, run_bertie: Run) -> None:
    done = run_bertie("quickstart", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    by_meaning, alone = asked(tmp_path / "out", Plan())
    assert by_meaning >= 11 and alone >= 2


@pytest.mark.slow
def test_real_weights_answer_nearly_all(minilm: Path, tmp_path: Path, run_bertie: Run) -> None:
    done = run_bertie("quickstart", "--base", minilm, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert asked(tmp_path / "out", Plan(base=str(minilm)))[0] >= 16
