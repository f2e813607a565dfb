"""Sets that are made of real text: what is asked, what is right, and what the simple rule answers."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.labelled_sets import read_rows
from experiments.task_sets import SOURCES, best_constant, main, swap, write_set

Row = dict[str, Any]


def article(number: int) -> str:
    """Six paragraphs of three sentences, each about a word of its own."""
    words = [f"topic{number}x{paragraph}" for paragraph in range(6)]
    times = ("two", "three", "four")
    return "\n".join(
        " ".join(f"The {word} was seen here {time} times in one year." for time in times) for word in words
    )


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    path = tmp_path / "wiki.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": article(number)}) + "\n" for number in range(20))
    return path


def squad(titles: list[str], per_article: int) -> dict[str, Any]:
    """Each passage has three sentences; the question on a river is answered by the second."""
    articles = []
    for title in titles:
        paragraphs = []
        for number in range(per_article):
            river = f"{title}river{number}"
            context = f"This is about {title}. The {river} flows there. Nothing else is known of it."
            answer = {"text": river, "answer_start": context.index(river)}
            question = {"id": river, "question": f"Which {river} flows?", "answers": [answer]}
            paragraphs.append({"context": context, "qas": [question]})
        articles.append({"title": title, "paragraphs": paragraphs})
    return {"data": articles}


@pytest.fixture
def questions(tmp_path: Path) -> dict[str, Path]:
    files = {"train": tmp_path / "train.json", "test": tmp_path / "dev.json"}
    files["train"].write_text(json.dumps(squad(["Aa", "Bb", "Cc", "Dd", "Ee", "Ff"], 6)))
    files["test"].write_text(json.dumps(squad(["Gg", "Hh"], 5)))
    return files


@pytest.fixture
def entities(tmp_path: Path) -> dict[str, Path]:
    sentence = "{0} - - B-PER\nlikes - - O\nParis - - B-LOC\n\nIt - - O\nrains - - O\n\n{0} - - B-PER\n\n"
    files = {part: tmp_path / f"{part}.txt" for part in ("train", "dev", "test")}
    for part, path in files.items():
        path.write_text("".join(sentence.format(f"{part}{number}") for number in range(10)))
    return files


def test_the_next_sentence_is_among_four_of_its_article(wiki: Path, tmp_path: Path) -> None:
    write_set("choice", {"text": wiki}, 20, 6, tmp_path / "out")
    train, test = (read_rows(tmp_path / "out" / f"{part}.jsonl") for part in ("train", "test"))
    assert (len(train), len(test)) == (20, 6)
    for row in train + test:
        assert len(set(row["candidates"])) == 4
        right = row["candidates"][row["label"]]
        topic = row["text"].split()[1]
        assert topic in right and right != row["text"], "the next sentence of the same paragraph"
        others = [one.split()[1] for one in row["candidates"] if one != right]
        assert all(other != topic and other.split("x")[0] == topic.split("x")[0] for other in others)
    topics = [{row["text"].split()[1].split("x")[0] for row in rows} for rows in (train, test)]
    assert not topics[0] & topics[1], "no article is in both"
    baseline = read_rows(tmp_path / "out" / "baseline.jsonl")
    assert [one["choice"] for one in baseline] == [row["label"] for row in test], "shared words tell it here"


def test_one_sentence_of_a_passage_answers(questions: dict[str, Path], tmp_path: Path) -> None:
    write_set("rank", questions, 7, 100, tmp_path)
    train, test = (read_rows(tmp_path / f"{part}.jsonl") for part in ("train", "test"))
    assert len(train) == 7 * 3, "rows are counted in questions"
    assert len(test) == 10 * 3
    for row in test:
        assert row["relevance"] == int("flows there" in row["candidate"])
    scores = read_rows(tmp_path / "baseline.jsonl")
    best = max(range(3), key=lambda number: scores[number]["score"])
    assert test[best]["relevance"] == 1


def test_the_types_of_entities_of_a_sentence(entities: dict[str, Path], tmp_path: Path) -> None:
    write_set("multi", entities, 30, 12, tmp_path)
    test = read_rows(tmp_path / "test.jsonl")
    assert len(test) == 12
    for row in test:
        assert row["label"] == (["LOC", "PER"] if "likes" in row["text"] else [] if "rains" in row["text"] else ["PER"])
    assert all(one == {"labels": ["PER"]} for one in read_rows(tmp_path / "baseline.jsonl"))


def test_the_best_constant_leaves_out_what_is_rare() -> None:
    assert best_constant([["A"], ["A"], ["A", "B"], ["A"], []]) == ["A"]
    assert best_constant([["A", "B"], ["B", "A"], ["B"]]) == ["B", "A"]


def test_swapped_questions_have_no_answer(questions: dict[str, Path], tmp_path: Path) -> None:
    write_set("swapped", questions, 1000, 1000, tmp_path)
    parts = {part: read_rows(tmp_path / f"{part}.jsonl") for part in ("train", "dev", "test")}
    assert {part: len(rows) for part, rows in parts.items()} == {"train": 24, "dev": 12, "test": 10}
    for rows in parts.values():
        without = [row for row in rows if not row["answers"]]
        assert 0 < len(without) <= len(rows) / 2 + 1
        for row in rows:
            river = row["question"].split()[1]
            assert (river in row["context"]) == bool(row["answers"])
    titles = [{row["title"] for row in parts[part]} for part in ("train", "dev")]
    assert not titles[0] & titles[1], "no article is in both"


def test_swapping_never_stays_in_an_article() -> None:
    rows: list[Row] = [
        {"title": title, "question": str(number), "context": f"{title}{number}", "answers": [1]}
        for number, title in enumerate("AAAAABBB")
    ]
    for row in swap(rows):
        assert (row["context"][0] != row["title"]) == (not row["answers"])
    assert [number for number, row in enumerate(swap(rows)) if not row["answers"]] == [4, 6]


def test_sentences_without_labels_beside_scored_pairs(wiki: Path, tmp_path: Path) -> None:
    pairs = "".join(f"x\tx\tx\tx\t{number}.5\tone {number}\tanother\n" for number in range(5))
    (tmp_path / "test.tsv").write_text(pairs)
    write_set("sentences", {"text": wiki, "test": tmp_path / "test.tsv"}, 30, 4, tmp_path / "o")
    train, test = (read_rows(tmp_path / "o" / f"{part}.jsonl") for part in ("train", "test"))
    assert len(train) == len({row["text"] for row in train}) == 30, "no sentence twice"
    assert all(set(row) == {"text"} and row["text"].endswith("year.") for row in train)
    assert len(test) == 4 and all(set(row) == {"text", "other", "score"} for row in test)


def test_a_labelled_set_is_cut(tmp_path: Path) -> None:
    for name in ("train", "test"):
        lines = [f"text {number}\t{number % 2}\n" for number in range(9)]
        (tmp_path / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(lines))
    files = [f"{part}={tmp_path / part}.tsv" for part in ("train", "test")]
    limits = ["--rows", "5", "--test-rows", "3"]
    main(["sst2", "--file", files[0], "--file", files[1], *limits, "--out", str(tmp_path / "o")])
    assert len(read_rows(tmp_path / "o" / "train.jsonl")) == 5
    assert len(read_rows(tmp_path / "o" / "test.jsonl")) == 3
    assert not (tmp_path / "o" / "baseline.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rank", "multi", "swapped", "choice", "sentences"])
def test_the_real_text_is_enough(name: str, shared: Path, tmp_path: Path) -> None:
    files = {part: shared / "data" / file for part, file in SOURCES[name].files.items()}
    write_set(name, files, 50, 20, tmp_path)
    assert len(read_rows(tmp_path / "train.jsonl")) >= 50
    assert len(read_rows(tmp_path / "test.jsonl")) >= 20
