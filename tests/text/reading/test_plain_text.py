"""Prepared text, and the way back to the original characters."""

import pytest

from bertie.text.reading.plain_text import prepare


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello\tWORLD", "hello world"),
        ("``Quoted''", '"quoted"'),
        ("Café e\u0301", "cafe e"),
        ("ﬁne ½", "fine 1⁄2"),
        ("ΟΔΟΣ", "οδοσ"),
        ("今天\u3000好", "今天 好"),
    ],
)
def test_text_is_made_plain(text: str, expected: str) -> None:
    assert prepare(text, lowercase=True, strip_accents=True).text == expected
    assert prepare(text, lowercase=True, strip_accents=True, align=False).text == expected


def test_case_and_accents_can_stay() -> None:
    assert prepare("Café ``x", lowercase=False, strip_accents=False).text == 'Café "x'
    assert prepare("Café", lowercase=True, strip_accents=False).text == "café"
    assert prepare("Café", lowercase=False, strip_accents=True).text == "Cafe"


def test_every_piece_knows_its_original_characters() -> None:
    text = "``Ünï'' ﬁn e\u0301!"
    plain = prepare(text, lowercase=True, strip_accents=True)
    assert plain.text == '"uni" fin e!'
    assert text[slice(*plain.original(0, 1))] == "``"
    assert text[slice(*plain.original(1, 4))] == "Ünï"
    assert text[slice(*plain.original(6, 8))] == "ﬁ"
    assert text[slice(*plain.original(10, 12))] == "e\u0301!"
    assert plain.original(12, 12) == (len(text), len(text))
