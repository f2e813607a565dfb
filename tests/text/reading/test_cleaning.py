import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import CapabilityError
from bertie.text.reading.cleaning import CONTROLS, INVISIBLE, SPACES, Cleaner, Cleaning

HARD = st.text(
    st.one_of(st.sampled_from(CONTROLS + INVISIBLE + SPACES + " \n\r\u2028ae\u0301\u030a가ﬁ中"), st.characters())
)


def test_clean_text_is_left_alone_and_counts_nothing() -> None:
    cleaner = Cleaner()
    for text in ("Plain text.\nSecond line.", "naïve 中文\n\n第二段 👨‍👩‍👧 ❤️"):
        assert cleaner(text) is text
    assert not cleaner.counts


def test_line_breaks_are_kept_and_unified() -> None:
    cleaner = Cleaner()
    assert cleaner("a\r\nb\rc\u2028d\x85e\n\nf") == "a\nb\nc\nd\ne\n\nf"
    assert cleaner.counts["line_ends_unified"] == 4


def test_white_space_is_folded_inside_lines_and_taken_off_their_ends() -> None:
    cleaner = Cleaner()
    assert cleaner("  a \t b\u00a0\u3000c  \n\t d\te  \n ") == "a b c\nd e"
    assert cleaner.counts["white_space_runs"] > 0
    assert cleaner.counts["white_space_at_ends"] > 0


def test_control_and_invisible_characters_are_removed_and_counted() -> None:
    cleaner = Cleaner()
    assert cleaner("a\x00b\x07\u200bc\ufeffd\u00ade") == "abcde"
    assert cleaner.counts["control_characters"] == 2
    assert cleaner.counts["invisible_characters"] == 3


def test_normal_forms() -> None:
    assert Cleaner()("e\u0301 ﬁ") == "é ﬁ"
    assert Cleaner(Cleaning(unicode="nfkc"))("e\u0301 ﬁ ｶﾞ") == "é fi ガ"
    assert Cleaner(Cleaning(unicode="none"))("e\u0301") == "e\u0301"
    assert Cleaner()("e\u200b\u0301") == "é"


def test_short_documents_are_left_out_and_counted() -> None:
    cleaner = Cleaner(Cleaning(min_characters=5))
    assert [cleaner(text) for text in ("abcd ", "abcde", "", " \n\u200b")] == ["", "abcde", "", ""]
    assert cleaner.counts["documents_too_short"] == 1
    assert cleaner.counts["characters_of_too_short"] == 4
    assert cleaner.counts["documents_empty"] == 2


def test_options_switch_steps_off() -> None:
    untouched = Cleaner(Cleaning(unicode="none", control_characters=False, white_space=False))
    assert untouched(" a\x07\u200b  b\t\u00a0 ") == " a\x07\u200b  b\t\u00a0 "
    assert not untouched.counts


def test_mending_without_ftfy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(CapabilityError, match=r"ftfy.*pip install ftfy"):
        Cleaner(Cleaning(fix_encoding=True))("schÃ¶n")


@given(HARD, st.sampled_from(["nfc", "nfkc"]))
def test_clean_text_is_normal_and_stays_clean(text: str, form: str) -> None:
    options = Cleaning.parse({"unicode": form})
    once = Cleaner(options)(text)
    again = Cleaner(options)
    assert again(once) == once
    assert not {key: count for key, count in again.counts.items() if key != "documents_empty"}
    assert unicodedata.is_normalized("NFC" if form == "nfc" else "NFKC", once)
    assert "  " not in once
    assert not set(once) & set(CONTROLS + INVISIBLE + SPACES) - {"\n"}


@given(HARD)
def test_no_letter_is_lost(text: str) -> None:
    def letters(value: str) -> str:
        return "".join(c for c in unicodedata.normalize("NFC", value) if c.isalpha() and c not in INVISIBLE)

    # Removing what stood between two letters may let them compose, so letters are compared in decomposed form.
    decomposed = unicodedata.normalize("NFD", letters("".join(c for c in text if c not in INVISIBLE + CONTROLS)))
    assert unicodedata.normalize("NFD", letters(Cleaner()(text))) == decomposed
