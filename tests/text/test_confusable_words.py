"""Words that are put right: the table of a user, what a tokenizer makes of it, and offsets that stay true."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, normalizers

from bertie.errors import InputError
from bertie.text.confusable_words import MARK, ConfusableWords, Step
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.tokenizer import load_tokenizer
from bertie.text.tokenizers.vocabulary import byte_bpe_tokenizer, wordpiece_tokenizer

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
        ("the: teh\n花呗 花被\n", ":2: the line does not show which words replace which"),
        ("the: teh\n花呗: ,\n", ":2: the line does not show"),
        ("the: teh\nten: teh\n", ":2: 'teh' is replaced by 'ten' here and by 'the' above"),
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


# Signs that Python's engine and that of `tokenizers` do not both take for parts of a word: accents, vowel signs of
# Devanagari and Thai, superscripts, circled numbers.
DOUBTFUL = "\u0301\u0308\u20dd\u0902\u093f\u0940\u094d\u0e33\u0e37\u0e48²³½①㉑Ⅷⓐ‿_"
OF_MARKS = {"x\u0301": "x", "की": "का", "นำ": "น้ำ", "²": "2", "|\\": "/", "(?!": "!", "a b": "ab"}


@given(st.lists(st.sampled_from([*RIGHTS, *OF_MARKS, *RIGHTS.values(), *DOUBTFUL, *"कขกน中文a,- 😀"])).map("".join))
def test_what_is_counted_is_what_the_tokenizer_replaces(text: str) -> None:
    table, replaced, total = ConfusableWords.of(RIGHTS | OF_MARKS), text, 0
    for pattern, right in table.steps:
        total += normalizers.Replace(Regex(pattern), "\ue000").normalize_str(replaced).count("\ue000")
        replaced = normalizers.Replace(Regex(pattern), right).normalize_str(replaced)
    assert table.applied(text) == (replaced, total) == (table.before(None).normalize_str(text), table.count(text))


@given(st.lists(st.sampled_from([*RIGHTS, *DOUBTFUL, *"कกน中文a,- 😀"])).map("".join))
def test_spans_are_the_wrong_words_that_the_tokenizer_replaces(text: str) -> None:
    table, parts, last = ConfusableWords.of(RIGHTS), list[str](), 0
    for start, end in table.spans(text):
        parts += [text[last:start], RIGHTS[text[start:end]]]
        last = end
    assert "".join([*parts, text[last:]]) == table.before(None).normalize_str(text)


@pytest.mark.parametrize(
    ("text", "read", "count"),
    [
        ("teh² ①teh", "the² ①the", 2),
        ("teh\u0301 कंteh tehที่", "teh\u0301 कंteh tehที่", 0),
        ("की, कीड़ा", "का, कीड़ा", 1),  # a vowel sign is a part of the word, at its end too
        ("😀teh😀teh", "😀the😀the", 2),
        ("teh \ud800", "teh \ud800", 0),  # no tokenizer reads it
    ],
)
def test_marks_belong_to_words_and_numbers_in_circles_do_not(text: str, read: str, count: int) -> None:
    assert ConfusableWords.of({"teh": "the", "की": "का"}).applied(text) == (read, count)


def test_a_table_of_an_older_folder_is_counted_as_it_is_replaced() -> None:
    step = Step(MARK + "x\u0301" + r"|(?<![^\W一-龥])teh(?![^\W一-龥])", "the")
    table = ConfusableWords((step,))
    assert step.wrong == ("x\u0301", "teh")
    for text in ("x\u0301teh", "teh", "tehx\u0301"):
        assert table.applied(text)[0] == table.before(None).normalize_str(text)
    assert table.spans("x\u0301teh") == [(0, 2)], "what is left of a longer word is no match, though it looks like one"


@given(st.lists(st.text(st.sampled_from("a|\\()[]?!<^#&~- \t花"), min_size=1), min_size=1, unique=True))
def test_a_pattern_tells_its_words(words: list[str]) -> None:
    table = ConfusableWords.of(dict.fromkeys(words, "right"))
    assert sorted(word for step in table.steps for word in step.wrong) == sorted(words)


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


@pytest.mark.parametrize(
    ("rights", "told"),
    [
        ({"花呗": "华为"}, "'花呗', a right word in it, would become '华为'"),
        ({"tha": "teh"}, "'teh', a right word in the new one, would become 'the'"),
        ({"teh": "ten"}, "'teh', a wrong one for 'the' in it, would become 'ten'"),
        ({"被单": "被子"}, "'花被单', a wrong one for '床单' in it, would become '花呗子'"),
    ],
)
def test_two_tables_that_disagree_are_refused(tokenizer: PipelineTokenizer, rights: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match="there is a table of words already") as error:
        tokenizer.correcting(ConfusableWords.of(rights), "base")
    assert told in str(error.value) and str(error.value).startswith("base: ")


def test_the_same_table_can_be_given_again(tokenizer: PipelineTokenizer, table: ConfusableWords) -> None:
    again = tokenizer.correcting(table)
    assert again.encode("用花被单 teh").ids.tolist() == tokenizer.encode("用花被单 teh").ids.tolist()
    assert again.confusable.count("用花被单 teh") == 2


def test_steps_of_a_tokenizer_itself_are_no_table() -> None:
    assert not wordpiece_tokenizer(PIECES).confusable.steps
    plain = byte_bpe_tokenizer({"a": 0, "b": 1}, [])
    assert not plain.confusable.steps and json.loads(plain.pipeline.to_str())["normalizer"] is None
    assert plain.correcting(ConfusableWords.of({"b": "a"})).encode("b").ids.tolist() == [0]
