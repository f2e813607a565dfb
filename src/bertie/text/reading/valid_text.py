"""Refuses texts that no tokenizer can read, and names which and why."""

from collections.abc import Sequence

from bertie.errors import InputError


def check_texts(texts: Sequence[str], what: str = "text", start: int = 0) -> None:
    """Raise an InputError that names the first text which is no string or holds a lone surrogate.

    UTF-8 has no form for lone surrogates, so every tokenizer refuses them. They come from files that were read with
    errors="surrogateescape" and from JSON with half an escape pair.
    """
    for index, text in enumerate(texts, start):
        if not isinstance(text, str):
            raise InputError(
                f"{what} {index} is {type(text).__name__}, not a string",
                hint="give strings only; an empty string is allowed",
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what} {index} holds the lone surrogate U+{ord(text[error.start]):04X} at character {error.start}",
                hint='read the text again with the right encoding, or replace it by text.encode("utf-8", "replace")',
            ) from None


def are_strings(texts: Sequence[str]) -> bool:
    """Whether every text is a string; one pass in C, since batches can hold millions."""
    return all(issubclass(kind, str) for kind in set(map(type, texts)))
