"""`bertie finetune`, `evaluate` and `predict`: labelled files in, answers in words out."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.tasks import TASKS
from bertie.text.tokenizers.tokenizer import load_tokenizer

Call = Callable[..., tuple[int, str, str]]
WORDS = ["good", "bad", "film", "food", "a", "the", "was", "very", "Anna", "went", "to", "Rome", "who", "where", "?"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(word.lower() for word in WORDS)]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    recipe = bert(Size(depth=2, width=32, num_heads=2), tokenizer.size).changed({"encoder.initial_std": 0.1})
    Pretrained(Model.new(recipe), tokenizer).save(folder / "model")
    return folder / "model"


@pytest.fixture
def call(run_bertie: Callable[..., subprocess.CompletedProcess[str]]) -> Call:
    """`call("finetune", ...)`: the exit code, what was printed, what was said."""

    def run(*words: Any) -> tuple[int, str, str]:
        done = run_bertie(*words)
        return done.returncode, done.stdout, done.stderr

    return run


def reviews(path: Path, count: int = 24) -> Path:
    rows = [f"the {'film' if number % 3 else 'food'} was {'good' if number % 2 else 'bad'}" for number in range(count)]
    lines = "".join(f"{row}\t{'pos' if 'good' in row else 'neg'}\n" for row in rows)
    path.write_text("sentence\tlabel\n" + lines)
    return path


QUICK = ("--epochs", 12, "--batch", 8, "--lr", 3e-3, "--max-length", 16)


def test_a_classifier_from_file_to_answer(base: Path, call: Call, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv"), tmp_path / "task"
    words = ("classify", "--base", base, "--train", train, "--dev", train, *QUICK, "--out", out)
    code, printed, said = call("finetune", *words)
    assert code == 0, said
    assert f"{out}/model: 36 steps" in printed and "accuracy 100.0%" in printed
    assert "text" in said and "sentence" in said, "which columns were taken is told"
    code, printed, _ = call("evaluate", out / "model", "--data", train, "--json")
    assert code == 0 and json.loads(printed)["accuracy"] == 1.0
    code, printed, _ = call("predict", out, "the food was good")
    assert code == 0 and json.loads(printed)["label"] == "pos"
    code, _, said = call("finetune", *words)
    assert code == 0 and "finished before" in said
    code, _, said = call("finetune", *words, "--seed", 1)
    assert code == 2 and "started with other options" in said and "finished before" not in said


def test_predictions_keep_the_order_of_the_rows_and_say_what_is_wrong(base: Path, call: Call, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv", 8), tmp_path / "task"
    assert call("finetune", "classify", "--base", base, "--train", train, "--epochs", 1, "--out", out)[0] == 0
    rows = [{"text": "good film"}, {"text": " "}, {"text": "bad " * 300}, {"other": 3}, {"text": "food"}]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    answers = tmp_path / "deep" / "answers.jsonl"
    code, _, said = call("predict", out, "--input", tmp_path / "rows.jsonl", "--output", answers)
    assert code == 0, said
    told = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [set(one) & {"label", "error"} for one in told] == [{"label"}, {"error"}, {"label"}, {"error"}, {"label"}]
    assert "rows.jsonl:2" in told[1]["error"] and "--skip-bad" not in told[1]["error"]
    assert "2 of 5 rows could not be answered" in said
    assert "1 rows were longer than 128 tokens" in said
    assert not list(answers.parent.glob("*.part"))


def test_tags_of_words(base: Path, call: Call, tmp_path: Path) -> None:
    sentence = "Anna B-PER\nwent O\nto O\nRome B-LOC\n\n"
    (tmp_path / "train.conll").write_text(sentence * 12 + "the O\nfilm O\n\n" * 12)
    out = tmp_path / "task"
    words = (
        "--base",
        base,
        "--train",
        tmp_path / "train.conll",
        "--dev",
        tmp_path / "train.conll",
        *QUICK,
        "--out",
        out,
    )
    code, printed, said = call("finetune", "tag", "--crf", *words)
    assert code == 0, said
    assert "f1 1.0000" in printed
    line = '  "Anna"  went to Rome ?'
    code, printed, said = call("predict", out, line)
    assert code == 0, said
    answer = json.loads(printed)
    assert len(answer["tags"]) == len(answer["words"])
    for entity in answer["entities"]:
        assert line[entity["start"] : entity["end"]] == entity["text"]


def test_several_seeds_and_the_best_of_them(base: Path, call: Call, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv", 8), tmp_path / "task"
    words = ("--base", base, "--train", train, "--dev", train, "--epochs", 1, "--out", out)
    code, printed, said = call("finetune", "classify", *words, "--seeds", 2, "--seed", 3)
    assert code == 0, said
    assert "the best of 2" in printed and "±" in printed
    assert sorted(path.name for path in out.iterdir()) == ["model", "seed-3", "seed-4", "summary.json"]
    assert call("predict", out, "good")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("clasify",), "Did you mean 'classify'?"),
        (("classify", "--crf"), "--crf is an option of tag, not of classify"),
        (("tag", "--multi"), "--multi is an option of classify, not of tag"),
        (("aspects",), "no columns of labels are given"),
        (("aspects", "--aspect", "taste"), "there is no column 'taste'"),
        (("classify", "--column", "text"), "not of the form ROLE=NAME"),
        (("classify", "--column", "body=sentence"), "this task has no role 'body'"),
        (("classify", "--max-length", "5000"), "longer than the model takes"),
        (("classify", "--seeds", "2"), "without --dev none is measured"),
        (("classify", "--format", "xls"), "the format 'xls' is not known"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    base: Path, call: Call, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    train = reviews(tmp_path / "train.tsv", 4)
    code, _, said = call("finetune", *words, "--base", base, "--train", train, "--out", tmp_path / "task")
    assert code == 2 and told in said
    assert not (tmp_path / "task").exists()


def test_a_model_that_learned_no_task_says_so(base: Path, call: Call, tmp_path: Path) -> None:
    code, _, said = call("predict", base, "a text")
    assert code == 2 and "was not trained for a task" in said and "bertie finetune" in said
    code, _, said = call("predict", base)
    assert code == 2 and "there is nothing to answer" in said
    code, _, said = call("predict", base, "a text", "--input", "rows.tsv")
    assert code == 2 and "not both" in said


def test_each_text_has_an_answer_unless_the_task_reads_pairs(base: Path, call: Call, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv", 8), tmp_path / "task"
    assert call("finetune", "classify", "--base", base, "--train", train, "--epochs", 1, "--out", out)[0] == 0
    for texts in (["good"], ["good", "bad film"], ["good", " ", "film"]):
        code, printed, said = call("predict", out, *texts)
        assert code == 0, said
        told = [json.loads(line) for line in printed.splitlines()]
        assert [one["row"] for one in told] == [*range(1, len(texts) + 1)]
        assert ["error" in one for one in told] == [not text.strip() for text in texts]
    alone = json.loads(call("predict", out, "bad film")[1])
    assert json.loads(call("predict", out, "good", "bad film")[1].splitlines()[1]) == {**alone, "row": 2}
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "pair"
    pairs.write_text("text\tother\tlabel\n" + "a film\tthe film\tsame\na food\twho went\tother\n" * 4)
    assert call("finetune", "pair", "--base", base, "--train", pairs, "--epochs", 1, "--out", out)[0] == 0
    code, printed, _ = call("predict", out, "a film", "the film")
    assert code == 0 and json.loads(printed)["row"] == 1
    for texts in (["a film"], ["a film", "the film", "a food", "the food"]):
        code, _, said = call("predict", out, *texts)
        assert code == 2 and f"a row of this task is text, other: 2 texts, not {len(texts)}" in said
        assert "--input: a table with the columns text, other, or JSON lines" in said


def test_bad_rows_are_passed_over_and_counted(base: Path, call: Call, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv", 8), tmp_path / "task"
    test = tmp_path / "test.tsv"
    test.write_text("sentence\tlabel\ngood\tpos\nbad\tawful\n\tneg\n")
    assert call("finetune", "classify", "--base", base, "--train", train, "--epochs", 1, "--out", out)[0] == 0
    code, _, said = call("evaluate", out, "--data", test)
    assert code == 2 and "test.tsv:3" in said and "'awful'" in said
    code, printed, said = call("evaluate", out, "--data", test, "--skip-bad")
    assert code == 0 and "2 rows are left out" in said and "accuracy" in printed


def test_another_task_on_the_same_encoder(base: Path, call: Call, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv", 8), tmp_path / "task"
    (tmp_path / "tags.conll").write_text("Anna B-PER\nwent O\n\n" * 8)
    words = ("--base", base, "--train", train, "--dev", train, "--epochs", 1, "--out", out)
    code, _, said = call("finetune", "classify", *words, "--also", f"tag:{tmp_path / 'tags.conll'}")
    assert code == 0, said
    code, _, said = call("predict", out, "good")
    assert code == 2 and "trained for several tasks" in said
    assert json.loads(call("predict", out, "good", "--task", "classify")[1])["label"] in ("pos", "neg")
    assert len(json.loads(call("predict", out, "Anna went", "--task", "tag")[1])["tags"]) == 2
    code, _, said = call("finetune", "classify", *words, "--also", "tag")
    assert code == 2 and "TASK:TRAIN[:DEV]" in said


def test_a_pair_needs_two_texts(base: Path, call: Call, tmp_path: Path) -> None:
    train = reviews(tmp_path / "train.tsv", 4)
    code, _, said = call("finetune", "pair", "--base", base, "--train", train, "--out", tmp_path / "task")
    assert code == 2 and "other" in said


def test_rows_to_be_measured_on_that_cannot_be_used(base: Path, call: Call, tmp_path: Path) -> None:
    train, dev, out = reviews(tmp_path / "train.tsv", 8), tmp_path / "dev.tsv", tmp_path / "task"
    words = ("classify", "--base", base, "--train", train, "--dev", dev, "--epochs", 1, "--skip-bad", "--out", out)
    dev.write_text("sentence\tlabel\nbad\tawful\n")
    code, _, said = call("finetune", *words)
    assert code == 2 and f"{dev}: no row can be used" in said and not out.exists()
    dev.write_text("sentence\tlabel\nbad\tawful\ngood\tpos\n")
    code, _, said = call("finetune", *words)
    assert code == 0 and "'awful'" in said and "dev.tsv:2" in said


def test_candidates_of_a_query_are_put_in_order(base: Path, call: Call, tmp_path: Path) -> None:
    lines = "".join(f"who went ?\t{name}\t{int(name == 'Anna')}\n" for name in ("Anna", "Rome", "film", "food"))
    (tmp_path / "train.tsv").write_text("query\tcandidate\trelevance\n" + lines)
    out = tmp_path / "task"
    code, _, said = call(
        "finetune", "rank", "--base", base, "--train", tmp_path / "train.tsv", "--epochs", 1, "--out", out
    )
    assert code == 0, said
    code, printed, said = call("predict", out, "who went ?", "Rome", "Anna", "film")
    assert code == 0, said
    told = [json.loads(line) for line in printed.splitlines()]
    assert {one["candidate"] for one in told} == {"Rome", "Anna", "film"}
    assert [one["score"] for one in told] == sorted((one["score"] for one in told), reverse=True)


def test_plain_lines_and_tables_without_names(base: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("good film\nbad food\n")
    reviews(tmp_path / "reviews.tsv", 8)
    labelled = tmp_path / "labelled"
    words = ("--base", base, "--train", tmp_path / "reviews.tsv", "--epochs", 1, "--out", labelled)
    assert call("finetune", "classify", *words)[0] == 0
    code, printed, said = call("predict", labelled, "--input", tmp_path / "lines.txt")
    assert code == 0 and len(printed.splitlines()) == 2, said
    (tmp_path / "lines.csv").write_text("good film\nbad food\n")
    code, printed, said = call("predict", labelled, "--input", tmp_path / "lines.csv", "--no-header")
    assert code == 0 and len(printed.splitlines()) == 2, said


@pytest.mark.parametrize(
    "verb", [["finetune", "classify", "--train", "x.tsv", "--base", "m"], ["pretrain", "--corpus", "c"]]
)
def test_training_from_the_shell_needs_a_folder_to_keep_it_in(verb: list[str], call: Call) -> None:
    code, _, errors = call(*verb)
    assert code == 2 and "--out is missing" in errors


@pytest.mark.usefixtures("plugins_as_before")
def test_other_tasks_and_plugins_are_in_a_printed_config(call: Call, tmp_path: Path) -> None:
    plugin = Path(__file__).parents[1] / "plugin_files" / "stars.py"
    given = ("--train", "t.tsv", "--base", "m", "--also", "tag:a.conll", "--column", "text=review")
    code, printed, errors = call("finetune", "stars", "--plugin", plugin, *given, "--print-config")
    assert code == 0, errors
    config = tmp_path / "config.toml"
    config.write_text(printed)
    assert tomllib.loads(printed)["data"]["also"] == [{"task": "tag", "train": ["a.conll"]}]
    assert call("finetune", "stars", "--config", config, "--print-config")[:2] == (0, printed)


def test_the_list_of_tasks_says_what_each_predicts(call: Call) -> None:
    _, shown, _ = call("finetune", "--help")
    for task in TASKS.values():
        assert task.about and task.about.split("`")[0].split(";")[0].strip()[:30] in " ".join(shown.split())


def test_a_label_that_is_not_known_does_not_matter_to_an_answer(base: Path, call: Call, tmp_path: Path) -> None:
    lines = reviews(tmp_path / "rows.tsv").read_text().splitlines()[1:]
    texts = [line.partition("\t")[0] for line in lines]
    (tmp_path / "train.tsv").write_text("\n".join(["note\tmood", *lines]) + "\n")
    (tmp_path / "test.tsv").write_text("note\tmood\n" + "".join(f"{text}\t-1\n" for text in texts[:3]))
    named = ("--column", "text=note", "--column", "label=mood")
    done = call(
        "finetune",
        "classify",
        "--base",
        base,
        "--train",
        tmp_path / "train.tsv",
        *named,
        "--epochs",
        1,
        "--out",
        tmp_path / "run",
    )
    assert done[0] == 0, done[2]
    code, printed, errors = call("predict", tmp_path / "run", "--input", tmp_path / "test.tsv")
    assert code == 0 and '"error"' not in printed and printed.count('"label"') == 3, errors


def test_an_unfinished_run_says_so(call: Call, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/options.json").write_text("{}")
    code, _, errors = call("predict", tmp_path / "run", "a text")
    assert code == 2 and "is not finished" in errors
