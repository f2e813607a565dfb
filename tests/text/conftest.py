"""Small vocabularies made on the spot, and random texts that are hard on tokenizers."""

import json
import random
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tokenizers

SENTENCES = (
    "Paris is the capital of France.",
    "The unaffable cat sat on the mat, didn't it?",
    "Running and jumping are 2 of 19 sports!",
    "使用语言模型来预测下一个词。",
    "今天天氣很好，我們去公園。",
    "Wörter mit Umlauten: naïve café Straße.",
)
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(scope="session")
def sentences() -> tuple[str, ...]:
    return SENTENCES


@pytest.fixture(scope="session")
def pieces() -> list[str]:
    """A WordPiece vocabulary: every character alone and as a continuation, word beginnings, endings and whole words."""
    text = " ".join(SENTENCES)
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    found = dict.fromkeys(sorted(set(text + plain + text.lower()) - {" "}))
    letters = [letter for letter in found if letter.isalpha() and not "一" <= letter <= "鿿"]
    found |= dict.fromkeys("##" + letter for letter in letters)
    for word in (text + " " + plain).replace(",", " ").replace(".", " ").split():
        if word.isascii() and word.isalpha():
            found |= dict.fromkeys((word, word[:3], "##" + word[-3:]))
    return [*SPECIALS, *found]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a folder: `write({"vocab.txt": [...], "tokenizer_config.json": {...}})`."""

    def write_folder(files: Mapping[str, Any]) -> Path:
        folder = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for name, content in files.items():
            if isinstance(content, bytes):
                (folder / name).write_bytes(content)
            elif name.endswith(".json") and not isinstance(content, str):
                (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
            else:
                text = content if isinstance(content, str) else "".join(line + "\n" for line in content)
                (folder / name).write_text(text, encoding="utf-8")
        return folder

    return write_folder


@pytest.fixture(scope="session")
def byte_bpe() -> tuple[dict[str, int], list[str]]:
    """vocab.json and the lines of merges.txt of a small byte-level BPE."""
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pipeline = tokenizers.Tokenizer(tokenizers.models.BPE())
    pipeline.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pipeline.train_from_iterator(SENTENCES * 3, trainer)
    model = json.loads(pipeline.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return model["vocab"], ["#version: 0.2", *merges]


@pytest.fixture(scope="session")
def spiece(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small spiece.model with the control symbols of an encoder."""
    import sentencepiece

    prefix = tmp_path_factory.mktemp("spiece") / "spiece"
    lines = [*(line.lower() for line in SENTENCES), "it has 19,000 or 2,000, parts 1, 2, 3,"] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(prefix),
        vocab_size=140,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    return prefix.with_suffix(".model").read_bytes()


WORDS = (
    *("the", "a", "of", "and", "Paris", "running", "unaffable", "Tokenization", "don't"),
    *("e-mail", "3.14", "U.S.A.", "naïve", "café", "Straße", "ÅNGSTRÖM"),
)
CHINESE = "使用语言模型来预测下一个词今天天氣很好臺灣的歷史與文化龍龜𠮷𠀀㐀豈豆"
OTHER = "カタカナひらがなｶﾞ한국어각ไทยภาษาहिन्दीক্ষதமிழ்ქართულიԱրմենερένΣσςЁёЙйІїĞğİıŞşßẞŁłØøÞþĲĳǅǆﬁﬂﬃŉ"
RIGHT_TO_LEFT = "שלוםעולםשָׁלוֹםمرحباعَرَبِيّﷺﻻ\u200f\u200e\u202b\u202e\u202c\u2067\u2069"
COMBINING = (
    "\u0300\u0301\u0302\u0303\u0308\u030a\u0323\u0327\u0328\u0345\u20dd\u0489\u093e\u09be\u3099\u309a\ufe20\u1ab0"
)
EMOJI = ("😀", "👍🏽", "👨‍👩‍👧‍👦", "🇫🇷", "❤️", "❤️‍🔥", "🏴\U000e0067\U000e0062\U000e007f", "1️⃣", "\ufe0f", "🧑🏿‍🚀")
CONTROL = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u061c\u180e\u2061\u2064\u206a\ufff9\ufffb"
SPACES = "     \t\n\r\u00a0\u1680\u2000\u2001\u2003\u2007\u2009\u200a\u2028\u2029\u202f\u205f\u3000\x0b\x0c\x85"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”‘’—–…、。，！？「」『』（）·•€£¥₿°±×÷¬§¶†‡‰′″※⁂⸮﹏＿～"
COMPATIBILITY = "①Ⅷ㎏™℡½²₂ａＺ０９ﾊﾟ㌔︰﹐ﬀſ℀Å℃Ω"
ODD = "\ufffd\ufffe\uffff\ue000\uf8ff\u0378\u2fff\U000f0000\U0010ffff\U0001f9ff\U000e0001\U0002fa1f\U00030000\ufdd0"
SPECIAL = ("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[unused5]", "[mask]", "[MASK", "##ing", "<s>", "[ MASK ]")


def draw_texts(seed: int, count: int) -> list[str]:
    """`count` texts; the same seed gives the same texts."""
    rng = random.Random(seed)
    return [random_text(rng) for _ in range(count)]


def random_text(rng: random.Random) -> str:
    parts: list[str] = []
    for _ in range(int(rng.random() ** 2 * 14)):
        parts.append(FRAGMENTS[int(rng.random() * len(FRAGMENTS))](rng))
        chance = rng.random()
        if chance < 0.5:
            parts.append(" ")
        elif chance < 0.6:
            parts.append(pick(rng, SPACES))
    text = "".join(parts)
    if rng.random() < 0.05:
        text = unicodedata.normalize(rng.choice(("NFC", "NFD", "NFKC", "NFKD")), text)
    return text


def pick(rng: random.Random, pool: str | tuple[str, ...] | list[str]) -> str:
    return pool[int(rng.random() * len(pool))]


def word(rng: random.Random) -> str:
    chosen = pick(rng, WORDS)
    return (chosen, chosen.upper(), chosen.capitalize())[int(rng.random() * 3)]


def run(rng: random.Random, pool: str | list[str], limit: int = 6) -> str:
    return "".join(pick(rng, pool) for _ in range(1 + int(rng.random() * limit)))


def accented(rng: random.Random) -> str:
    return "".join(letter + (pick(rng, COMBINING) if rng.random() < 0.4 else "") for letter in word(rng))


def injected(rng: random.Random) -> str:
    """A word with something invisible or out of place within."""
    letters = list(word(rng))
    letters.insert(int(rng.random() * len(letters)), pick(rng, rng.choice((CONTROL, ZERO_WIDTH, COMBINING, ODD))))
    return "".join(letters)


def long_word(rng: random.Random) -> str:
    """Around the limits of 100 and 200 characters, where a word becomes one unknown token."""
    length = rng.choice((98, 99, 100, 101, 102, 150, 199, 200, 201, 260))
    unit = rng.choice(("a", "ab", "é", "e\u0301", "x\u200d", "q9", "ß", "İ", "中", "ab,", "한", "ﬁ"))
    return (unit * length)[:length]


def letter_soup(rng: random.Random) -> str:
    return run(rng, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 12)


def any_characters(rng: random.Random) -> str:
    """Code points from the whole of Unicode, without the surrogates."""
    found = []
    for _ in range(1 + int(rng.random() * 4)):
        ceiling = rng.choice((0x250, 0x3000, 0x10000, 0x20000, 0x110000))
        code = int(rng.random() * ceiling)
        found.append("\ufffd" if 0xD800 <= code < 0xE000 else chr(code))
    return "".join(found)


FRAGMENTS = (
    *(word,) * 8,
    *(letter_soup,) * 2,
    *(lambda rng: run(rng, CHINESE),) * 3,
    *(accented,) * 3,
    *(injected,) * 3,
    *(any_characters,) * 3,
    lambda rng: run(rng, OTHER),
    lambda rng: run(rng, RIGHT_TO_LEFT),
    lambda rng: run(rng, COMBINING, 3),
    lambda rng: run(rng, CONTROL, 3),
    lambda rng: run(rng, ZERO_WIDTH, 3),
    lambda rng: run(rng, SPACES, 3),
    lambda rng: run(rng, PUNCTUATION, 4),
    lambda rng: run(rng, COMPATIBILITY, 4),
    lambda rng: pick(rng, EMOJI) + (pick(rng, EMOJI) if rng.random() < 0.3 else ""),
    lambda rng: pick(rng, SPECIAL) + (word(rng) if rng.random() < 0.3 else ""),
    lambda rng: long_word(rng) if rng.random() < 0.15 else word(rng),
)


@pytest.fixture(scope="session")
def random_texts() -> Callable[[int, int], list[str]]:
    """`random_texts(seed, count)`: hard texts, the same for the same seed."""
    return draw_texts
