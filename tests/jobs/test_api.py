"""The Python API: training from data in memory, the same weights as the command line gives, results that display."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

import bertie
from bertie.errors import InputError
from bertie.reporting.events import Event

Run = Callable[..., CompletedProcess[str]]
TEXTS = [
    f"the {adjective} {noun} {verb} ."
    for adjective in ("old", "red", "small")
    for noun in ("cat", "dog")
    for verb in ("sat", "ran")
]
ROWS = [{"text": text, "label": "cat" if "cat" in text else "dog"} for text in TEXTS]
QUICK: dict[str, Any] = {"epochs": 2, "batch": 4, "max_length": 16}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vocabulary") / "vocab"
    bertie.train_vocab(TEXTS, kind="wordpiece", size=60, min_frequency=1, out=out)
    return out


@pytest.fixture(scope="module")
def start(vocabulary: Path) -> dict[str, Any]:
    return {"recipe": "bert", "size": "tiny", "tokenizer": vocabulary}


def weights(folder: Path) -> dict[str, bytes]:
    return {
        name: tensor.numpy().tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()
    }


def forms(tmp_path: Path) -> dict[str, Any]:
    pandas, polars, datasets = (pytest.importorskip(name) for name in ("pandas", "polars", "datasets"))
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return {
        "dicts": ROWS,
        "pandas": pandas.DataFrame(ROWS),
        "polars": polars.DataFrame(ROWS),
        "arrow": polars.DataFrame(ROWS).to_arrow(),
        "datasets": datasets.Dataset.from_list(ROWS),
        "path": str(file),
    }


def test_all_forms_of_data_and_the_command_line_give_the_same_weights(
    tmp_path: Path, start: dict[str, Any], vocabulary: Path, run_bertie: Run
) -> None:
    given = forms(tmp_path)
    found = {}
    for name, rows in given.items():
        out = tmp_path / name
        run = bertie.finetune("classify", train=rows, dev=rows, out=out, **start, **QUICK)
        assert run.evaluate(rows).metrics["accuracy"] == run.metrics["accuracy"]
        found[name] = weights(out)
    words = ["--recipe", "bert", "--size", "tiny", "--tokenizer", vocabulary, "--out", tmp_path / "shell"]
    words += ["--epochs", 2, "--batch", 4, "--max-length", 16]
    done = run_bertie("finetune", "classify", "--train", given["path"], "--dev", given["path"], *words)
    assert done.returncode == 0, done.stderr
    found["shell"] = weights(tmp_path / "shell")
    assert all(one == found["dicts"] for one in found.values())


def test_a_run_without_out_is_temporary(start: dict[str, Any]) -> None:
    run = bertie.finetune("classify", train=ROWS, **start, **QUICK)
    folder = run.folder
    assert (folder / "model").is_dir()
    assert [answer["label"] for answer in run.predict(TEXTS[:2])] != []
    del run
    assert not folder.exists()


def test_predictions_are_the_same_from_texts_dicts_and_the_command_line(
    tmp_path: Path, start: dict[str, Any], run_bertie: Run
) -> None:
    run = bertie.finetune("classify", train=ROWS, out=tmp_path / "run", **start, **QUICK)
    model = bertie.load(tmp_path / "run")
    from_texts = model.predict(TEXTS)
    assert from_texts == model.predict([{"text": text} for text in TEXTS]) == run.predict(TEXTS)
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(TEXTS) + "\n")
    printed = run_bertie("predict", tmp_path / "run", "--input", lines, "--format", "lines").stdout
    assert [json.loads(line) for line in printed.splitlines()] == from_texts
    one = run_bertie("predict", tmp_path / "run", TEXTS[0]).stdout
    assert json.loads(one) == from_texts[0] == model.predict(TEXTS[0])[0]


def test_rows_that_cannot_be_used_are_answered_with_their_error(tmp_path: Path, start: dict[str, Any]) -> None:
    run = bertie.finetune("classify", train=ROWS, **start, **QUICK)
    answers = run.predict([{"text": "the cat"}, {"text": ""}, {"text": "the dog"}])
    assert ["error" in answer for answer in answers] == [False, True, False]


def test_results_display_in_terminals_and_notebooks(start: dict[str, Any], vocabulary: Path) -> None:
    run = bertie.finetune("classify", train=ROWS, dev=ROWS, **start, **QUICK)
    results = [run, run.evaluate(ROWS), bertie.train_vocab(TEXTS, size=60, min_frequency=1)]
    for result in results:
        assert len(str(result)) > 20
        assert result._repr_html_().startswith("<")
        json.dumps(result.to_json())
    assert "<table" in run.predict(TEXTS)._repr_html_()


def test_a_run_has_a_readable_data_card_and_a_report(tmp_path: Path, start: dict[str, Any]) -> None:
    rows = [{**row, "label": f"标签 {row['label']}"} for row in ROWS]
    messages: list[str] = []
    bertie.finetune(
        "classify",
        train=rows,
        dev=rows,
        out=tmp_path / "run",
        on_event=lambda event: messages.append(event.message),
        **start,
        **QUICK,
    )
    written = (tmp_path / "run" / "data_card.json").read_text(encoding="utf-8")
    assert "标签 cat" in written and json.loads(written)["dev"]["also_in_train"] == len(ROWS)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Confusion: label" in page and "Worst mistakes" in page and page.count("<svg") == 3
    text = page.replace("<wbr>", "")
    assert f"<dt>model</dt><dd>{tmp_path}/run/model</dd>" in text
    assert "<dt>base</dt>" in page and "<dt>trained on</dt>" in page and "<dt>date</dt>" in page
    assert "<td>epochs</td>" in page and "<td>optimizer.rate</td>" in text and "<td>rows read</td>" in page
    bertie.evaluate(str(tmp_path / "run"), rows[:2], report=tmp_path / "evaluated.html")
    evaluated = (tmp_path / "evaluated.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert f"<dt>model</dt><dd>{tmp_path}/run</dd>" in evaluated and "<td>epochs</td>" in evaluated
    assert ", 2 rows</dd>" in evaluated and "Learning curve" not in evaluated, "curves are of other rows"
    printed = "\n".join(messages)
    assert "rows measured" in printed and "report.html" in printed
    assert "gold in rows" not in printed and "    predicted:" not in printed, "these are on the page"


def test_callbacks_get_events(start: dict[str, Any]) -> None:
    events: list[Event] = []
    bertie.finetune("classify", train=ROWS, dev=ROWS, on_event=events.append, **start, **QUICK)
    kinds = {event.kind for event in events}
    assert {"message", "step", "evaluation", "finished"} <= kinds


def test_from_raw_text_to_a_filled_gap(vocabulary: Path) -> None:
    corpus = bertie.build_corpus(TEXTS, tokenizer=vocabulary, keep_near_duplicates=True)
    run = bertie.pretrain("bert-wwm", size="tiny", corpus=corpus, steps=2, held_out=0, sentences="none")
    assert run.summary["steps"] == 2
    assert len(run.fill("the [MASK] sat .", top=3)) == 3
    vectors = bertie.embed(run.model, TEXTS[:3])
    assert np.allclose(vectors.vectors, run.encode(TEXTS[:3]), atol=1e-6)


def test_a_wrong_keyword_is_one_sentence() -> None:
    with pytest.raises(bertie.errors.SpecError, match="did you mean `epochs`"):
        bertie.finetune("classify", train=ROWS, base="x", epoch=3)
    with pytest.raises(bertie.errors.SpecError, match="did you mean 'classify'"):
        bertie.finetune("clasify", train=ROWS, base="x")


def test_a_table_of_texts_is_read_by_its_column(vocabulary: Path) -> None:
    pandas, polars, datasets = (pytest.importorskip(name) for name in ("pandas", "polars", "datasets"))
    rows = [{"body": text, "number": number} for number, text in enumerate(TEXTS)]
    tables = [rows, pandas.DataFrame(rows), polars.DataFrame(rows), datasets.Dataset.from_list(rows)]
    expected = bertie.train_vocab(TEXTS, size=60, min_frequency=1).tokenizer.digest
    for table in tables:
        assert bertie.train_vocab(table, column="body", size=60, min_frequency=1).tokenizer.digest == expected
    for texts in (pandas.Series(TEXTS), polars.Series(TEXTS)):
        assert bertie.train_vocab(texts, size=60, min_frequency=1).tokenizer.digest == expected
    with pytest.raises(InputError, match="the table has no column 'text'; its columns are body, number"):
        bertie.build_corpus(tables[1], tokenizer=vocabulary)


def test_tables_are_answered_and_measured(start: dict[str, Any]) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    run = bertie.finetune("classify", train=pandas.DataFrame(ROWS), **start, **QUICK)
    expected = run.predict(ROWS)
    for table in (pandas.DataFrame(ROWS), polars.DataFrame(ROWS), pandas.Series(TEXTS)):
        assert run.predict(table) == expected
    assert run.evaluate(polars.DataFrame(ROWS)).metrics == run.evaluate(ROWS).metrics


def test_the_options_of_a_run_are_in_its_folder_and_repeat_it(
    tmp_path: Path, start: dict[str, Any], run_bertie: Run
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    bertie.finetune("classify", train=file, dev=file, out=tmp_path / "first", seed=3, **start, **QUICK)
    done = run_bertie("finetune", "classify", "--config", tmp_path / "first/config.toml", "--out", tmp_path / "second")
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "first") == weights(tmp_path / "second")


def test_a_head_is_kept_where_its_labels_are_the_same_in_whatever_order(start: dict[str, Any], tmp_path: Path) -> None:
    run = bertie.finetune("classify", train=ROWS, out=tmp_path / "run", **start, **QUICK)
    model = bertie.load(tmp_path / "run")
    (task,) = model.recipe.objectives
    turned = model.recipe.replace(objectives=(task.replace(labels=("dog", "cat")),))  # as others may number them
    model.model.recipe = turned
    model.save(tmp_path / "turned")
    events: list[Event] = []
    before = bertie.load(tmp_path / "turned").predict(TEXTS)
    kept = bertie.finetune(
        "classify", base=tmp_path / "turned", train=ROWS, dev=ROWS, epochs=0, max_length=16, on_event=events.append
    )
    assert kept.predict(TEXTS) == before
    assert "the head is that of the base" in [event.message for event in events]
    assert run.predict(TEXTS) != before
    other = [{**row, "label": f"a {row['label']}"} for row in ROWS]
    events.clear()
    bertie.finetune("classify", base=tmp_path / "turned", train=other, dev=other, epochs=0, on_event=events.append)
    assert "the head is new, since the base was trained for other labels" in [event.message for event in events]


def test_what_is_left_out_or_unknown_is_a_warning_in_python(start: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="1 of|1 row|rows"):
        run = bertie.finetune(
            "classify", train=ROWS, dev=[*ROWS, {"text": "", "label": "cat"}], skip_bad=True, **start, **QUICK
        )
    with pytest.warns(UserWarning, match="unknown"):
        run.predict(["很好 很好 很好"])
