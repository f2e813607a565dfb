import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.errors import SpecError
from bertie.text import sentences
from bertie.text.sentences import check_language, split_sentences

PIECES = (
    "Mr. Smith went. ",
    "Really?",
    "！",
    "。",
    "他说：“好。”",
    "…",
    "\n",
    "\r\n",
    " ",
    "\u2028",
    "e\u0301",
    "3.14",
    "😀",
    ".",
    '"',
)


def test_english_abbreviations_end_no_sentence() -> None:
    assert split_sentences("Mr. Smith went home. He slept.") == ["Mr. Smith went home. ", "He slept."]


def test_chinese_sentences_end_at_their_own_marks() -> None:
    assert split_sentences("你好吗？我很好。再见！", "zh") == ["你好吗？", "我很好。", "再见！"]


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5))).map("".join),
    st.sampled_from(["en", "zh", "de", "ja"]),
)
def test_nothing_is_lost_and_no_sentence_is_blank(paragraph: str, language: str) -> None:
    found = split_sentences(paragraph, language)
    assert "".join(found) == paragraph
    assert all(sentence.strip() for sentence in found) or not paragraph.strip()
    assert all(found)


@pytest.mark.parametrize("unit", ["你好吗？我很好。", "He went. She came! ", "没有标点", "x"])
def test_long_paragraphs_are_cut_first_and_lose_nothing(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "LONGEST", 50)
    paragraph = unit * 40
    found = split_sentences(paragraph, "zh" if unit[0] > "z" else "en")
    assert "".join(found) == paragraph
    assert len(found) >= len(paragraph) // 50
    if "。" in unit or "!" in unit:
        assert len(found) == 80


def test_only_language_codes_are_taken() -> None:
    assert check_language("zh_CN") == "zh-CN"
    with pytest.raises(SpecError, match=r'language code.*"zh"'):
        check_language("Chinese!")
