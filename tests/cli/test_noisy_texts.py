"""Misspelt texts on the command line: noise, words that are put right, spaces that are put back."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import bertie
from bertie.data.rows import open_rows
from bertie.data.rows.memory_rows import MemoryRows
from bertie.jobs.finetuning.finetune_options import ModelOptions
from bertie.jobs.finetuning.row_notes import report_corrected_rows
from bertie.jobs.options.initial_model import InitialModel
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.tasks.classification import Pair
from bertie.tasks.examples import Examples
from bertie.tasks.labelled import Labelled
from bertie.tasks.spacing import Spacing
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task, Values
from bertie.text.confusable_words import ConfusableWords
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Call = Callable[..., subprocess.CompletedProcess[str]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "good",
    "bad",
    "film",
    *LETTERS,
    *(f"##{one}" for one in LETTERS),
]
QUICK = ("--epochs", 4, "--batch", 8, "--lr", 3e-3, "--max-length", 24, "--precision", "float32")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "model"
    tokenizer = wordpiece_tokenizer(PIECES)
    recipe = bert(Size(depth=1, width=32, num_heads=2), tokenizer.size).changed({"encoder.initial_std": 0.1})
    Pretrained(Model.new(recipe), tokenizer).save(folder)
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "train.tsv"
    path.write_text("sentence\tlabel\n" + "a good film\tpos\na bad film\tneg\n" * 12)
    return path


def test_a_model_is_trained_with_noise_and_measured_under_it(
    base: Path, rows: Path, run_bertie: Call, tmp_path: Path
) -> None:
    out, words = tmp_path / "task", ("classify", "--base", base, "--train", rows, *QUICK)
    done = run_bertie("finetune", *words, "--noise", 0.5, "--out", out)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "options.json").read_text())["options"]["noise"]["rate"] == 0.5
    assert run_bertie("finetune", *words, "--out", out).returncode == 2, "without noise it is another run"
    given = ("evaluate", out, "--data", rows, "--noise", "0,0.5,1")
    done = run_bertie(*given, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [point["rate"] for point in told["noise"]] == [0.0, 0.5, 1.0]
    assert told["noise"][0]["accuracy"] == told["accuracy"] and told["noise"][2]["misspelt"] == 1.0
    done = run_bertie(*given, "--png", rows / "curve.png")
    assert done.returncode == 2 and "is a file, so nothing can be written into it" in done.stderr
    done = run_bertie(*given, "--report", tmp_path / "report.html", "--png", tmp_path / "curve.png")
    assert done.returncode == 0, done.stderr
    assert "accuracy of misspelt texts" in done.stdout and "% of words" in done.stdout
    assert "Misspelt texts" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_words_are_put_right_wherever_the_model_goes(base: Path, rows: Path, run_bertie: Call, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("good: goood, gud\nbad: baad\n")
    (tmp_path / "test.tsv").write_text("sentence\tlabel\na gud film\tpos\na baad film\tneg\nfilm gudgud\tpos\n")
    out = tmp_path / "task"
    given = ("--base", base, "--train", rows, "--corrections", tmp_path / "words.txt", *QUICK)
    done = run_bertie("finetune", "classify", *given, "--out", out)
    assert done.returncode == 0 and "0 words are corrected" in done.stderr, done.stderr
    done = run_bertie("evaluate", out, "--data", tmp_path / "test.tsv", "--json")
    assert done.returncode == 0 and "test.tsv: 2 words are corrected" in done.stderr, done.stderr
    right, wrong = (run_bertie("predict", out, text) for text in ("a good film", "a gud film"))
    assert json.loads(right.stdout) == json.loads(wrong.stdout)
    assert "1 words are corrected" in wrong.stderr and "0 words are corrected" in right.stderr
    done = run_bertie("predict", out, "--input", tmp_path / "test.tsv", "--output", tmp_path / "answers.jsonl")
    assert done.returncode == 0 and "2 words are corrected" in done.stderr
    tokenizer = bertie.load(out).tokenizer
    assert tokenizer is not None
    assert tokenizer.encode("gud").ids.tolist() == tokenizer.encode("good").ids.tolist()


def test_a_table_that_the_model_has_is_kept_and_told(base: Path, rows: Path, run_bertie: Call, tmp_path: Path) -> None:
    begun = bertie.load(base)
    begun.tokenizer = wordpiece_tokenizer(PIECES).correcting(ConfusableWords.of({"gud": "good"}))
    begun.save(tmp_path / "base")
    for folder, words, told in (
        (base, {"baad": "bad"}, []),
        (tmp_path / "base", None, []),
        (
            tmp_path / "base",
            {"baad": "bad"},
            ["the model already has a table of corrections: it is kept, and the new one"],
        ),
    ):
        corrections = None if words is None else ConfusableWords.of(words)
        initial = InitialModel(ModelOptions(base=str(folder)), None, corrections)
        tokenizer = initial.load(0).tokenizer
        assert tokenizer is not None
        note = initial.note(tokenizer)
        assert note is None if not told else (note or "").startswith(told[0])
    (tmp_path / "words.txt").write_text("film: good\n")
    given = ("--base", tmp_path / "base", "--train", rows, "--corrections", tmp_path / "words.txt", *QUICK)
    done = run_bertie("finetune", "classify", *given, "--out", tmp_path / "task")
    assert done.returncode == 2 and "'good', a right word in it, would become 'film'" in " ".join(done.stderr.split())
    assert not (tmp_path / "task").exists()


def test_what_noise_did_is_told(base: Path, run_bertie: Call, tmp_path: Path) -> None:
    """Misspelt words have more pieces: rows that were short enough are cut, and ideographs of no table stay."""
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "a good film\tpos\n\u3402\tneg\n" * 12)
    words = ("--base", base, "--train", tmp_path / "train.tsv", *QUICK, "--max-length", 8, "--noise", 1.0)
    done = run_bertie("finetune", "classify", *words, "--out", tmp_path / "task")
    assert done.returncode == 0 and "no row is cut at 8" in done.stderr, done.stderr
    notes = json.loads((tmp_path / "task" / "summary.json").read_text())["notes"]
    (told,) = (note for note in notes if note.startswith("noise misspelt"))
    assert told in done.stderr
    changed, num_words, num_rows, num_cut = (int(number) for number in re.findall(r"(\d+) (?:of the|words|rows)", told))
    assert 0 < changed < num_words and 0 < num_cut < num_rows < 4 * 24
    assert told.endswith("of the rows became longer than 8 tokens and were cut")


def test_a_wrong_table_is_told_first(base: Path, run_bertie: Call, tmp_path: Path) -> None:
    (tmp_path / "alike.txt").write_text("ab\n")
    words = (
        "--base",
        base,
        "--train",
        tmp_path / "nothing.tsv",
        "--noise",
        0.5,
        "--confusable",
        tmp_path / "alike.txt",
    )
    done = run_bertie("finetune", "classify", *words, "--out", tmp_path / "task")
    assert done.returncode == 2 and "'a' is not an ideograph" in done.stderr, "before rows are read"


def test_spaces_are_learned_from_plain_text(run_bertie: Call, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat\na dog sat on the mat\n\n" * 8)
    out = tmp_path / "spaces"
    given = ("--recipe", "bilstm", "--size", "tiny", "--train", tmp_path / "text.txt", "--dev", tmp_path / "text.txt")
    learning = ("--epochs", 5, "--batch", 8, "--lr", 1e-2, "--precision", "float32")
    done = run_bertie("finetune", "spaces", *given, *learning, "--out", out)
    assert done.returncode == 0, done.stderr
    done = run_bertie("predict", out, "thecatsatonthemat")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"row": 1, "text": "the cat sat on the mat"}
    done = run_bertie("evaluate", out, "--data", tmp_path / "text.txt", "--json")
    assert json.loads(done.stdout)["f1"] == 1.0
    assert run_bertie("evaluate", out, "--data", tmp_path / "text.txt").returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("classify",), "say which model to start from"),
        (("classify", "--base", "x", "--recipe", "bert"), "--base and --recipe cannot both be given"),
        (("classify", "--base", "x", "--tokenizer", "y"), "--tokenizer needs --recipe"),
        (("classify", "--recipe", "bort", "--tokenizer", "."), "did you mean 'bert'?"),
        (("classify", "--base", "BASE", "--confusable", "x"), "--confusable needs --noise"),
        (("classify", "--base", "BASE", "--corrections", "no-such-file"), "there is no such file"),
        (
            ("spaces", "--recipe", "bilstm", "--corrections", "x"),
            "--corrections replace whole words, and this task reads",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    base: Path, rows: Path, run_bertie: Call, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    given = [str(base) if word == "BASE" else str(base) if word == "." else word for word in words]
    done = run_bertie("finetune", *given, "--train", rows, "--out", tmp_path / "task")
    assert done.returncode == 2 and told in done.stderr, done.stderr
    assert not (tmp_path / "task").exists()


def test_answers_cannot_be_misspelt(base: Path, run_bertie: Call, tmp_path: Path) -> None:
    row = {"question": "who?", "context": "bob sat", "answers": [{"text": "bob", "answer_start": 0}]}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n" * 4)
    given = ("--base", base, "--train", tmp_path / "rows.jsonl", "--noise", 0.3, "--max-length", 24)
    done = run_bertie("finetune", "answer", *given, "--out", tmp_path / "task")
    assert done.returncode == 2 and "rows of the task answer cannot be misspelt" in done.stderr
    assert not (tmp_path / "task").exists()


@pytest.mark.parametrize("noise", ["0,x", "0.1,1.5", ""])
def test_rates_that_are_none_are_refused(noise: str, base: Path, rows: Path, run_bertie: Call) -> None:
    done = run_bertie("evaluate", base, "--data", rows, "--noise", noise)
    assert done.returncode == 2 and "is not a list of shares" in done.stderr


def test_words_are_counted_as_they_are_read(base: Path) -> None:
    tokenizer = wordpiece_tokenizer(PIECES).correcting(ConfusableWords.of({"gud": "good", "a film": "film"}))
    values = {"text": "gud a film", "other": "gud", "label": "gud"}
    counted: list[str] = []

    def count(task: Task, row: Values) -> str:
        counted.clear()
        labelled = Labelled(MemoryRows("rows", [row]), {role: role for role in row})
        report_corrected_rows(Examples(task, labelled, tokenizer, 64), lambda event: counted.append(event.message))
        return counted[0].split()[1]

    assert count(Pair(), values) == "3"
    assert count(Tagging(), {"words": "gud a film", "tags": ["gud", "x", "y"]}) == "1"
    assert count(Spacing(), {"text": "gud"}) == "0", "it is read character by character"
    model = bertie.load(base)
    model.tokenizer = tokenizer
    assert model.encode_report(["gud film", "good", "a gud a film"]).num_replaced == 3


def test_characters_are_those_of_the_rows_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "a b"}\n{"text": \n{"text": "c"}\n')
    rows = Labelled(open_rows([tmp_path / "rows.jsonl"]), {"text": "text"})
    assert list(rows.sample()) == [{"text": "a b"}, {"text": "c"}]
