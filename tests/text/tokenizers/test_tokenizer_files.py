"""Every kind of tokenizer file against `transformers`: ids, offsets, types, truncation and pairs."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bertie.text import Tokenizer, load_tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Write = Callable[..., Path]
Draw = Callable[[int, int], list[str]]


def opened(folder: Path) -> tuple[Tokenizer, Any]:
    """The same folder, opened here and by `transformers`."""
    from transformers import AutoTokenizer

    ours = load_tokenizer(folder)
    assert ours is not None
    return ours, AutoTokenizer.from_pretrained(folder)


def assert_same(ours: Tokenizer, theirs: Any, texts: list[str]) -> None:
    # An empty second text counts as none there, and as a text here.
    pairs = [(first, second) for first, second in zip(texts, texts[1:] + texts[:1], strict=True) if second]
    for first, second in [*((text, None) for text in texts), *pairs]:
        for max_length in (None, 4, 7, 16, 33):
            found = ours.encode(first, second, max_length)
            limits: dict[str, Any] = {"truncation": True, "max_length": max_length} if max_length else {}
            expected = theirs(
                first, second, return_offsets_mapping=True, return_token_type_ids=True, padding=False, **limits
            )
            assert found.ids.tolist() == expected["input_ids"], (first, second, max_length)
            assert found.offsets.tolist() == [list(span) for span in expected["offset_mapping"]], (first, second)
            assert found.segments.tolist() == expected["token_type_ids"]
            words = [-1 if word is None else word for word in expected.word_ids()]
            num_first = max([w for w, t in zip(words, found.texts, strict=True) if t == 0], default=-1) + 1
            if second is None or not max_length:
                shift = [num_first if text == 1 else 0 for text in found.texts]
                assert found.words.tolist() == [w + s for w, s in zip(words, shift, strict=True)]
    flat = ours.encode_ids(texts, max_length=9)
    limited = theirs(texts, truncation=True, max_length=9, padding=False)["input_ids"]
    whole = theirs(texts, truncation=False, padding=False)["input_ids"]
    assert [ids.tolist() for ids in flat] == limited
    assert flat.num_truncated.tolist() == [len(w) - len(s) for w, s in zip(whole, limited, strict=True)]


def copied(source: Path, folder: Path, files: Mapping[str, Any]) -> Path:
    shutil.copytree(source, folder)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_real_encoder(minilm: Path, random_texts: Draw, sentences: tuple[str, ...]) -> None:
    ours, theirs = opened(minilm)
    assert_same(ours, theirs, [*sentences, *random_texts(21, 60)])
    assert ours.max_length == theirs.model_max_length == 512
    assert ours.size == len(theirs)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("bert-base-uncased", "bert"),
        ("bert-base-cased", "bert"),
        ("bert-base-chinese", "bert"),
        ("bert-base-multilingual-cased", "bert"),
        ("roberta-base", "roberta"),
        ("gpt2", "gpt2"),
    ],
)
@pytest.mark.parametrize("cased", [False, True])
def test_real_vocabularies(
    name: str, family: str, cased: bool, shared: Path, tmp_path: Path, random_texts: Draw, sentences: tuple[str, ...]
) -> None:
    settings = {"do_lower_case": not cased, "model_max_length": 512}
    files = {"config.json": {"model_type": family}, "tokenizer_config.json": settings}
    ours, theirs = opened(copied(shared / "vocab" / name, tmp_path / "copy", files))
    assert_same(ours, theirs, [*sentences, *random_texts(22, 30)])
    special = {"pad": "pad", "first": "cls", "separator": "sep", "mask": "mask"}
    for role, key in special.items():
        assert getattr(ours.special, role) == getattr(theirs, f"{key}_token_id")


CONFIG = {"model_type": "bert"}


@pytest.mark.parametrize(
    "settings",
    [
        {"tokenizer_class": "BertTokenizer"},
        {"tokenizer_class": "BertTokenizerFast", "do_lower_case": False},
        {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "strip_accents": True},
        {"do_lower_case": False, "tokenize_chinese_chars": False},
        {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True},
        {"tokenizer_class": "BertTokenizer", "additional_special_tokens": ["<new>", "[E1]"]},
        {"tokenizer_class": "BertTokenizer", "cls_token": "[SEP]", "mask_token": "<new>"},
        {"tokenizer_class": "PreTrainedTokenizerFast", "truncation_side": "left"},
    ],
)
@pytest.mark.parametrize("lowercase_in_json", [True, False])
@pytest.mark.parametrize("has_json", [True, False])
def test_settings_count_where_transformers_counts_them(
    settings: dict[str, Any],
    lowercase_in_json: bool,
    has_json: bool,
    write: Write,
    pieces: list[str],
    random_texts: Draw,
) -> None:
    if not has_json and settings.get("tokenizer_class") == "PreTrainedTokenizerFast":
        pytest.skip("transformers opens a bare vocabulary by a class of its own only")
    files: dict[str, Any] = {"tokenizer_config.json": settings, "config.json": CONFIG, "vocab.txt": pieces}
    if has_json:
        files["tokenizer.json"] = wordpiece_tokenizer(pieces, lowercase=lowercase_in_json).pipeline.to_str()
    ours, theirs = opened(write(files))
    assert ours.size == len(theirs)
    texts = ["Paris <new> CAFÉ [E1] 今天 naïve", *random_texts(23, 20)]
    assert_same(ours, theirs, texts)


def test_stated_limits_of_tokenizer_json_are_not_applied(write: Write, pieces: list[str]) -> None:
    pipeline = wordpiece_tokenizer(pieces).pipeline
    pipeline.enable_truncation(3)
    pipeline.enable_padding(length=9)
    ours = load_tokenizer(write({"tokenizer.json": pipeline.to_str()}))
    assert ours is not None
    assert len(ours.encode("the cat sat on the mat")) == 8
    assert ours.encode_ids(["the"]).lengths.tolist() == [3]
    assert ours.digest == wordpiece_tokenizer(pieces).digest


@pytest.mark.parametrize("space", [True, False, None])
def test_byte_level_settings(
    space: bool | None,
    write: Write,
    byte_bpe: tuple[dict[str, int], list[str]],
    random_texts: Draw,
    sentences: tuple[str, ...],
) -> None:
    settings = {"tokenizer_class": "RobertaTokenizer"} | ({} if space is None else {"add_prefix_space": space})
    vocabulary, merges = byte_bpe
    files: dict[str, Any] = {"vocab.json": vocabulary, "merges.txt": merges, "tokenizer_config.json": settings}
    folder = write({**files, "config.json": {"model_type": "roberta"}})
    texts = [*sentences, *random_texts(24, 20)]
    ours, theirs = opened(folder)
    assert_same(ours, theirs, texts)
    theirs.backend_tokenizer.save(str(folder / "tokenizer.json"))
    assert_same(*opened(folder), texts)
    other = theirs.backend_tokenizer.to_str().replace('"add_prefix_space":true', '"add_prefix_space":false')
    (folder / "tokenizer.json").write_text(other, encoding="utf-8")
    found, expected = opened(folder)
    assert found.encode("Paris is").ids.tolist() == expected("Paris is")["input_ids"]


def test_unigram_settings(write: Write) -> None:
    pieces = [["<pad>", 0.0], ["<unk>", 0.0], ["[CLS]", 0.0], ["[SEP]", 0.0], ["[MASK]", 0.0]]
    pieces += [[piece, -1.0] for piece in ("▁cafe", "▁café", "▁Café", "▁Cafe", "▁")]
    model = {"type": "Unigram", "unk_id": 1, "vocab": pieces, "byte_fallback": False}
    lower = {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    for normalizer in (lower, None):
        content: dict[str, Any] = {"model": model, "normalizer": normalizer, "pre_tokenizer": space, "added_tokens": []}
        for lowercase in (True, False):
            for keep_accents in (True, False):
                settings = {
                    "tokenizer_class": "AlbertTokenizer",
                    "do_lower_case": lowercase,
                    "keep_accents": keep_accents,
                }
                folder = write({"tokenizer.json": content, "tokenizer_config.json": settings})
                ours = load_tokenizer(folder)
                assert ours is not None
                expected = "▁" + ("c" if lowercase else "C") + "af" + ("é" if keep_accents else "e")
                assert [ours.token_of(id) for id in ours.encode("Café").ids] == [expected]
                assert ours.kind == "unigram"


def test_older_files_name_the_special_tokens(write: Write) -> None:
    words = ["<nothing>", "<oov>", "<start>", "<end>", "<hide>", "a", "##b"]
    names = {"pad_token": words[0], "unk_token": words[1], "cls_token": words[2], "sep_token": words[3]}
    names["mask_token"] = {"content": words[4], "lstrip": True, "rstrip": False, "single_word": False}  # type: ignore[assignment]
    folder = write(
        {
            "vocab.txt": words,
            "special_tokens_map.json": names,
            "added_tokens.json": {"<more>": 7},
            "config.json": CONFIG,
        }
    )
    ours, theirs = opened(folder)
    assert ours.special.ids() == [0, 1, 2, 3, 4]
    assert ours.size == len(theirs) == 8
    for text in ("ab <hide>a<more> x", "<start> ab"):
        assert ours.encode(text).ids.tolist() == theirs(text)["input_ids"]
