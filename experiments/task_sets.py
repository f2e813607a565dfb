"""Rows to learn from and to be measured on: a set's files enter, train.jsonl, test.jsonl and so on leave in a folder.

`python -m experiments.task_sets NAME --file train=PATH --file test=PATH --rows 5000 --out FOLDER`. Sets of
`benchmarks.labelled_sets` are taken as they are. The others are made here of real text, for tasks that have no public
set in the folder `shared`; beside them stands baseline.jsonl, what a simple rule answers to the rows of the test.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.labelled_sets import SEED, SETS, Parts, Row, read_set, write_rows

from bertie.search.bm25 import BM25
from bertie.tasks.metrics.labels import multi_label_scores
from bertie.text.sentences import split_sentences
from bertie.text.tag_schemes import spans_of

NUM_CANDIDATES = 4
HIGHEST = 5.0  # score of STS-B
PER_ARTICLE = 2  # rows of `choice`
SENTENCES = 4  # of an article, in `sentences`
PARAGRAPHS = 4  # of an article, in `spaces`
LONGEST_WORD = 30  # characters
FEWEST_WORDS, MOST_WORDS = 5, 50  # of a sentence in `choice`
DEV_ROWS = 1000
EVERY = 5  # one article in so many is held out

Files = Mapping[str, Path]


@dataclass(frozen=True)
class Made:
    """Rows, and the simple rule's answers to those of the test, in the form of `bertie predict`."""

    parts: Parts
    baseline: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """`make` gets the files, and how many rows there may be to learn from and to be measured on."""

    files: Mapping[str, str]
    make: Callable[[Files, int, int], Made]


def choice(files: Files, num_rows: int, num_test: int) -> Made:
    """Which of four sentences follows; the other three stand elsewhere in the same article."""
    parts: Parts = {"train": [], "test": []}
    for number, text in enumerate(articles(files["text"])):
        part = "test" if number % EVERY == 0 else "train"
        parts[part] += list(islice(next_sentences(text, random.Random(SEED + number)), PER_ARTICLE))
        if len(parts["train"]) >= num_rows and len(parts["test"]) >= num_test:
            break
    parts = cut(parts, num_rows, num_test)
    measure = BM25(candidate for row in parts["train"] for candidate in row["candidates"])
    return Made(parts, [{"choice": most_alike(measure, row["text"], row["candidates"])} for row in parts["test"]])


def articles(file: Path) -> Iterator[str]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)["text"]


def next_sentences(text: str, rng: random.Random) -> Iterator[Row]:
    paragraphs = [
        [sentence.strip() for sentence in split_sentences(paragraph)] for paragraph in text.split("\n") if paragraph
    ]
    usual = [[one for one in sentences if is_usual(one)] for sentences in paragraphs]
    pairs = [
        (number, place)
        for number, sentences in enumerate(paragraphs)
        for place in range(len(sentences) - 1)
        if is_usual(sentences[place]) and is_usual(sentences[place + 1])
    ]
    rng.shuffle(pairs)
    for number, place in pairs:
        first, following = paragraphs[number][place : place + 2]
        others = [one for other, sentences in enumerate(usual) if other != number for one in sentences]
        others = [one for one in dict.fromkeys(others) if one not in (first, following)]
        if len(others) < NUM_CANDIDATES - 1:
            return
        candidates = [following, *rng.sample(others, NUM_CANDIDATES - 1)]
        rng.shuffle(candidates)
        yield {"text": first, "candidates": candidates, "label": candidates.index(following)}


def is_usual(sentence: str) -> bool:
    return FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS


def most_alike(measure: BM25, text: str, candidates: Sequence[str]) -> int:
    scores = [measure.score(text, candidate) for candidate in candidates]
    return scores.index(max(scores))


def spaces(files: Files, num_rows: int, num_test: int) -> Made:
    """Paragraphs; those of the test stand in other articles. The rule knows the words of the others."""
    parts: Parts = {"train": [], "test": []}
    for number, text in enumerate(articles(files["text"])):
        usual = [paragraph for paragraph in text.split("\n") if len(paragraph.split()) >= FEWEST_WORDS]
        chosen = random.Random(SEED + number).sample(usual, min(PARAGRAPHS, len(usual)))
        parts["test" if number % EVERY == 0 else "train"] += [{"text": paragraph} for paragraph in chosen]
        if len(parts["train"]) >= num_rows and len(parts["test"]) >= num_test:
            break
    parts = cut(parts, num_rows, num_test)
    words = {word for row in parts["train"] for word in row["text"].split()}
    return Made(parts, [{"text": longest_words("".join(row["text"].split()), words)} for row in parts["test"]])


def longest_words(text: str, words: set[str]) -> str:
    """The text with spaces between the longest words that are known, from left to right; what is unknown stays
    together."""
    parts, begin, place = list[str](), 0, 0
    while place < len(text):
        ends = range(min(len(text), place + LONGEST_WORD), place + 1, -1)
        end = next((end for end in ends if text[place:end] in words), None)
        if end is None:
            place += 1
            continue
        parts += [text[begin:place], text[place:end]]
        begin = place = end
    return " ".join(part for part in (*parts, text[begin:]) if part)


def rank(files: Files, num_rows: int, num_test: int) -> Made:
    """Which sentence of its passage answers a question. Rows are counted in questions."""
    questions = read_set("squad", files)
    limits = {"train": num_rows, "test": num_test}
    parts = {
        part: [row for group in islice(sentence_groups(questions[part]), limits[part]) for row in group]
        for part in limits
    }
    measure = BM25({row["candidate"] for part in parts.values() for row in part})
    return Made(parts, [{"score": measure.score(row["query"], row["candidate"])} for row in parts["test"]])


def sentence_groups(questions: Sequence[Row]) -> Iterator[list[Row]]:
    """Of one question each; not where the answer is in no single sentence, nor where the question came before."""
    seen: set[str] = set()
    for row in questions:
        answer, query = row["answers"][0], row["question"]
        start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        group, place = [], 0
        for sentence in split_sentences(row["context"]):
            relevant = place <= start and end <= place + len(sentence)
            place += len(sentence)
            group.append({"query": query, "candidate": sentence.strip(), "relevance": int(relevant)})
        if query not in seen and len(group) > 1 and sum(one["relevance"] for one in group) == 1:
            seen.add(query)
            yield group


def multi(files: Files, num_rows: int, num_test: int) -> Made:
    """Which types of entities a sentence names. The rule tells the same types of every sentence."""
    found = cut(read_set("conll", files), num_rows, num_test)
    parts = {part: [entity_types(row) for row in rows] for part, rows in found.items()}
    told = best_constant([row["label"] for row in parts["train"]])
    return Made(parts, [{"labels": told} for _ in parts["test"]])


def entity_types(row: Row) -> Row:
    return {"text": " ".join(row["words"]), "label": sorted({span.label for span in spans_of(row["tags"])})}


def best_constant(rows: Sequence[Sequence[str]]) -> list[str]:
    """The most frequent types, as many as give the best F1 where they are told of every row."""
    labels = [label for label, _ in Counter(label for row in rows for label in row).most_common()]
    gold = [[label in row for label in labels] for row in rows]

    def f1_of(count: int) -> float:
        told = [number < count for number in range(len(labels))]
        return multi_label_scores(gold, [told] * len(rows))["micro_f1"]

    return labels[: max(range(1, len(labels) + 1), key=f1_of)]


def swapped_questions(files: Files, num_rows: int, num_test: int) -> Made:
    """Every second question is asked of a passage of another article, which has no answer to it."""
    found = read_set("squad", files)
    titles = sorted({row["title"] for row in found["train"]})
    held = set(titles[::EVERY])
    train = [row for row in found["train"] if row["title"] not in held]
    dev = [row for row in found["train"] if row["title"] in held]
    parts = {"train": swap(train), "dev": swap(dev), "test": swap(found["test"])}
    return Made(cut(parts, num_rows, num_test))


def swap(rows: Sequence[Row]) -> list[Row]:
    """In pairs: each of the two asks the other's passage."""
    swapped = list(rows)
    waiting: list[int] = []  # of one article
    for number in range(0, len(rows), 2):
        if not waiting or rows[waiting[-1]]["title"] == rows[number]["title"]:
            waiting.append(number)
            continue
        other = waiting.pop()
        for one, place in ((number, other), (other, number)):
            swapped[one] = {**rows[one], "context": rows[place]["context"], "answers": []}
    return swapped


def sentences(files: Files, num_rows: int, num_test: int) -> Made:
    """Some sentences of each article, without labels; the test is scored pairs."""
    found: dict[str, None] = {}
    for number, text in enumerate(articles(files["text"])):
        usual = [one.strip() for line in text.split("\n") for one in split_sentences(line) if is_usual(one)]
        rng = random.Random(SEED + number)
        found |= dict.fromkeys(rng.sample(usual, min(SENTENCES, len(usual))))
        if len(found) >= num_rows:
            break
    test = read_set("stsb", {"test": files["test"]})["test"]
    return Made(cut({"train": [{"text": text} for text in found], "test": test}, num_rows, num_test))


def unit_scores(files: Files, num_rows: int, num_test: int) -> Made:
    """STS-B with scores of 0 to 1: bertie learns such, whatever the rows have, and a peer takes them as they are."""
    parts = cut(read_set("stsb", files), num_rows, num_test)
    return Made(
        {part: [{**row, "score": float(row["score"]) / HIGHEST} for row in rows] for part, rows in parts.items()}
    )


def labelled(name: str) -> Source:
    return Source(SETS[name].files, lambda files, *limits: Made(cut(read_set(name, files), *limits)))


def with_dev(name: str) -> Source:
    """With rows to choose on, whatever the number of rows to learn from: of its own, or else the last of train."""

    def make(files: Files, num_rows: int, num_test: int) -> Made:
        parts = read_set(name, files)
        if "dev" not in parts:
            num_dev = min(DEV_ROWS, len(parts["train"]) // 5)
            parts |= {"train": parts["train"][:-num_dev], "dev": parts["train"][-num_dev:]}
        found = cut(parts, num_rows, num_test)
        return Made({**found, "dev": found["dev"][:DEV_ROWS]})

    return Source(SETS[name].files, make)


def cut(parts: Parts, num_rows: int, num_test: int) -> Parts:
    return {part: rows[: num_rows if part == "train" else num_test] for part, rows in parts.items()}


SOURCES = {
    **{name: labelled(name) for name in SETS},
    **{f"{name}_with_dev": with_dev(name) for name in ("sst2", "conll", "mrpc", "stsb", "chnsenticorp", "msra")},
    "unit_stsb": Source(SETS["stsb"].files, unit_scores),
    "choice": Source({"text": "en_wiki.jsonl.gz"}, choice),
    "spaces": Source({"text": "en_wiki.jsonl.gz"}, spaces),
    "rank": Source(SETS["squad"].files, rank),
    "sentences": Source({"text": "en_wiki.jsonl.gz", "test": SETS["stsb"].files["test"]}, sentences),
    "multi": Source(SETS["conll"].files, multi),
    "swapped": Source(SETS["squad"].files, swapped_questions),
}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SOURCES)
    parser.add_argument("--file", action="append", required=True, metavar="PART=PATH")
    parser.add_argument("--rows", type=int, required=True, help="to learn from, at most")
    parser.add_argument("--test-rows", type=int, default=1 << 30, help="to be measured on, at most")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    pairs = (word.partition("=") for word in options.file)
    write_set(options.name, {part: Path(path) for part, _, path in pairs}, options.rows, options.test_rows, options.out)


def write_set(name: str, files: Files, num_rows: int, num_test: int, out: Path) -> None:
    made = SOURCES[name].make(files, num_rows, num_test)
    out.mkdir(parents=True, exist_ok=True)
    for part, rows in made.parts.items():
        write_rows(out / f"{part}.jsonl", rows)
    if made.baseline:
        write_rows(out / "baseline.jsonl", made.baseline)


if __name__ == "__main__":
    main()
