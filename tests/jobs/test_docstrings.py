"""The examples in the docstrings of the Python API run, and give what they show."""

import doctest
import warnings
from pathlib import Path

import pytest

import bertie

FUNCTIONS = [name for name in bertie.__all__ if callable(getattr(bertie, name))]
ROWS = [{"text": "a great film", "label": "good"}, {"text": "so dull", "label": "bad"}]
TEXTS = ["One document.", "Another one.", "a great film", "so dull", "one text of another", "what a film"] * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name: my-vocab, my-model and my-task."""
    made = tmp_path_factory.mktemp("examples")
    bertie.train_vocab([*TEXTS, *map(str, range(40))], size=120, held_out=0, min_frequency=1, out=made / "my-vocab")
    corpus = bertie.build_corpus(TEXTS, tokenizer=made / "my-vocab", keep_duplicates=True)
    bertie.pretrain("bert", size="tiny", corpus=corpus, steps=2, held_out=0, out=made / "my-run")
    (made / "my-run" / "model").rename(made / "my-model")
    base, out = made / "my-model", made / "my-task"
    bertie.finetune("classify", base=base, train=ROWS, epochs=20, lr=1e-3, warmup=0.0, out=out)
    return made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(verbose=False)
    tests = [test for test in finder.find(getattr(bertie, name), name, globs={"bertie": bertie}) if test.examples]
    assert tests, "a docstring without an example"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for test in tests:
            assert runner.run(test).failed == 0, test.name
