"""A small made-up language with many ties: words of syllables, each as frequent as several others."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

SYLLABLES = ("ka", "to", "mi", "rel", "un", "ing", "é", "st", "o", "Ba")


def made_up_documents(num_documents: int = 120, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(400)]
    chinese = "使用语言模型来预测下一个词的概率"
    documents = []
    for _ in range(num_documents):
        lines = [" ".join(rng.choices(words, k=12)) + ", it's 19!" for _ in range(4)]
        documents.append("\n".join([*lines, "".join(rng.choices(chinese, k=8)) + "。"]))
    return documents


@pytest.fixture(scope="session")
def documents() -> list[str]:
    return made_up_documents()


@pytest.fixture
def corpus_file(tmp_path: Path, documents: list[str]) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
    return path


class Texts:
    """A slice that is held in memory."""

    def __init__(self, *texts: str):
        self.texts = texts

    def read(self) -> list["Text"]:
        return [Text(text) for text in self.texts]


class Text:
    def __init__(self, text: str):
        self.text = text


@pytest.fixture(scope="session")
def as_slice() -> Callable[..., Texts]:
    return Texts
