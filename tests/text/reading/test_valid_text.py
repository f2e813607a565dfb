"""Which text cannot be read, and why."""

import pytest

from bertie.errors import InputError
from bertie.text.reading.valid_text import are_strings, check_texts


def test_a_lone_surrogate_is_named_with_its_place() -> None:
    with pytest.raises(
        InputError, match=r"text 1 holds the lone surrogate U\+D800 at character 2; read the text again"
    ):
        check_texts(["fine 😀", "ab\ud800c"])


@pytest.mark.parametrize(("text", "kind"), [(None, "NoneType"), (3, "int"), (b"ab", "bytes")])
def test_what_is_no_string_is_named(text: object, kind: str) -> None:
    texts = ["", text]
    assert not are_strings(texts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"text 1 is {kind}, not a string"):
        check_texts(texts)  # type: ignore[arg-type]


def test_kinds_of_string_pass() -> None:
    class Title(str):
        pass

    texts = ["", Title("x"), "\U0010ffff"]
    check_texts(texts)
    assert are_strings(texts)
    assert are_strings([])
