"""A small vocabulary, and texts that look like language: any number, the same for the same seed."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
CHINESE = "使用语言模型来预测下一个词的概率今天天气很好我们去公园学习中国历史与文化。，"


def words_of(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count)]


def paragraph_of(rng: random.Random, count: int) -> str:
    words = words_of(rng, count)
    for place in range(7, count, 8):
        words[place] += "."
        if place + 1 < count:
            words[place + 1] = words[place + 1].capitalize()
    return " ".join(words) + "."


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,!?"))
    pieces = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters)]
    pieces += [*SYLLABLES, *(f"##{syllable}" for syllable in SYLLABLES), *sorted(set(CHINESE))]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tokenizer(vocabulary: Path) -> Tokenizer:
    found = load_tokenizer(vocabulary)
    assert found is not None
    return found


@pytest.fixture
def write_documents(tmp_path: Path) -> Callable[..., Path]:
    """`write_documents(["text", ...], "name.jsonl")`"""

    def write(texts: list[str], name: str = "texts.jsonl") -> Path:
        path = tmp_path / name
        lines = (json.dumps({"text": text, "title": f"{name} {number}"}) for number, text in enumerate(texts))
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


@pytest.fixture(scope="session")
def random_documents() -> Callable[..., list[str]]:
    """`random_documents(seed, count)`: some paragraphs each."""

    def draw(seed: int, count: int, num_words: int = 60) -> list[str]:
        rng = random.Random(seed)
        return [
            "\n".join(paragraph_of(rng, rng.randint(num_words // 2, num_words)) for _ in range(rng.randint(2, 4)))
            for _ in range(count)
        ]

    return draw


@pytest.fixture(scope="session")
def change_words() -> Callable[[str, float, int], str]:
    """`change_words(text, share, seed)`: that share of the words is replaced, exactly."""

    def change(text: str, share: float, seed: int) -> str:
        rng = random.Random(seed)
        words = text.replace("\n", " \n ").split(" ")
        places = [place for place, word in enumerate(words) if word != "\n"]
        for place in rng.sample(places, round(share * len(places))):
            words[place] = f"new{rng.randrange(10**6)}"
        return " ".join(words).replace(" \n ", "\n")

    return change
