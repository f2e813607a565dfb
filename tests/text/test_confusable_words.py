"""Words that are put right: the table of a user, what a tokenizer makes of it, and offsets that stay true."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import InputError
from bertie.text.confusable_words import ConfusableWords
from bertie.text.pipeline import PipelineTokenizer
from bertie.text.tokenizer import load_tokenizer
from bertie.text.vocabulary import byte_bpe_tokenizer, wordpiece_tokenizer

RIGHTS = {"花被": "花呗", "花珥": "花呗", "花钗": "花呗", "teh": "the", "alot": "a lot", "花被单": "床单"}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"花呗被单床用", "the", "a", "lot", "##n", "te", "##h", ","]


@pytest.fixture
def table() -> ConfusableWords:
    return ConfusableWords.of(RIGHTS)


@pytest.fixture
def tokenizer(table: ConfusableWords) -> PipelineTokenizer:
    return wordpiece_tokenizer(PIECES).correcting(table)


def read(path: Path, text: str) -> ConfusableWords:
    path.write_text(text, "utf-8")
    return ConfusableWords.read(path)


def test_lines_are_read_as_people_write_them(tmp_path: Path, table: ConfusableWords) -> None:
    text = "# 错别字\n花呗: 花被, 花珥，花钗\r\n\nthe\tteh\na lot：alot\n床单\t花被单\n"
    assert read(tmp_path / "words.txt", text) == table


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the: teh\n花呗 花被\n", ":2: the line does not say which words stand for which"),
        ("the: teh\n花呗: ,\n", ":2: the line does not say"),
        ("the: teh\nten: teh\n", ":2: 'teh' stands for 'ten' here and for 'the' above"),
        ("the: teh, the\n", ":1: 'the' is right and wrong at once"),
        ("New York City: New York\n", "'New York City' would itself be replaced, by 'New York City City'"),
        ("# nothing\n", "the table has no words"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path / "words.txt", text)
    assert f"{tmp_path / 'words.txt'}" in str(error.value) and told in str(error.value)


def test_longer_words_go_first_and_words_of_letters_are_whole(table: ConfusableWords) -> None:
    assert table.applied("用花被单，用花被") == ("用床单，用花呗", 2)
    assert table.applied("teh tehran, ateh teh用teh") == ("the tehran, ateh the用the", 3)
    assert table.count({"text": "teh 花钗", "others": ["alot", 3, None]}) == 3


def test_signs_of_patterns_mean_themselves(tmp_path: Path) -> None:
    table = read(tmp_path / "words.txt", "C++: C(plus), .c\\1\nA\\B: A.B\n")
    assert table.applied("C(plus) and xc\\1 and .c\\1, A.B AxB") == ("C++ and xc\\1 and C++, A\\B AxB", 3)


@given(st.text(st.sampled_from("花被珥钗呗单床teh alot,x")))
def test_the_tokenizer_reads_what_the_table_says(text: str) -> None:
    table = ConfusableWords.of(RIGHTS)
    pipeline = wordpiece_tokenizer(PIECES).correcting(table).pipeline
    replaced = table.before(None).normalize_str(text)
    assert replaced == table.applied(text)[0]
    plain = wordpiece_tokenizer(PIECES).pipeline
    assert pipeline.encode(text).ids == plain.encode(replaced).ids


def test_offsets_are_those_of_the_whole_wrong_word(tokenizer: PipelineTokenizer) -> None:
    text, pair = "a 花被, teh", "用花被单"
    tokens = tokenizer.encode(text, pair)
    written = [
        (text if place < (tokens.second_start or 0) else pair)[a:b] for place, (a, b) in enumerate(tokens.offsets)
    ]
    names = [tokenizer.token_of(id) for id in tokens.ids]
    assert list(zip(names, written, strict=True)) == [
        ("[CLS]", ""),
        *(("a", "a"), ("花", "花被"), ("呗", "花被"), (",", ","), ("the", "teh"), ("[SEP]", "")),
        *(("用", "用"), ("床", "花被单"), ("单", "花被单"), ("[SEP]", "")),
    ]


def test_words_given_one_by_one_keep_their_number(tokenizer: PipelineTokenizer) -> None:
    tokens = tokenizer.encode_words(["用", "花被", "alot"])
    assert tokens.words.tolist() == [-1, 0, 1, 1, 2, 2, -1]
    assert tokens.offsets.tolist()[2:6] == [[0, 2], [0, 2], [0, 4], [0, 4]]


def test_a_saved_tokenizer_carries_its_table(
    tokenizer: PipelineTokenizer, table: ConfusableWords, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert isinstance(loaded, PipelineTokenizer)
    assert loaded.confusable == table and loaded.digest == tokenizer.digest
    text = "TEH teh 花钗"
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(text)["input_ids"] == loaded.encode(text).ids.tolist() == loaded.encode_ids([text]).ids.tolist()


def test_a_second_table_is_added_to_the_first(tokenizer: PipelineTokenizer) -> None:
    both = tokenizer.correcting(ConfusableWords.of({"tha": "the"}))
    assert both.encode("tha teh").ids.tolist() == both.encode("the the").ids.tolist()
    assert both.confusable.applied("tha teh") == ("the the", 2)


def test_steps_of_a_tokenizer_itself_are_no_table() -> None:
    assert not wordpiece_tokenizer(PIECES).confusable.steps
    plain = byte_bpe_tokenizer({"a": 0, "b": 1}, [])
    assert not plain.confusable.steps and json.loads(plain.pipeline.to_str())["normalizer"] is None
    assert plain.correcting(ConfusableWords.of({"b": "a"})).encode("b").ids.tolist() == [0]
