"""Turns failures inside the library `tokenizers` into one sentence.

What its Rust code raises is a plain Exception, or, where it panics, a PanicException, which is no Exception at all.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from bertie.errors import TokenizerError

P = ParamSpec("P")
R = TypeVar("R")
PANIC = "PanicException"


def is_of_library(error: BaseException) -> bool:
    return type(error) is Exception or type(error).__name__ == PANIC


def explained(method: Callable[P, R]) -> Callable[P, R]:
    """Decorates a method of a tokenizer that calls the library."""

    @functools.wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return method(*arguments, **options)
        except BaseException as error:
            if not is_of_library(error):
                raise
            where = getattr(getattr(arguments[0], "settings", None), "where", None)
            raise failure(error, "fails in `tokenizers`", where) from None

    return call


@contextmanager
def opening(where: str) -> Iterator[None]:
    """Explains any failure while a pipeline is made from a file."""
    try:
        yield
    except TokenizerError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_of_library(error):
            raise
        raise failure(error, "`tokenizers` cannot read it", where) from error


def failure(error: BaseException, what: str, where: str | None) -> TokenizerError:
    reason = " ".join(str(error).split())[:300]
    hint = "the file is broken, or was written by a newer version of `tokenizers`"
    if "UNK" in reason.upper():
        hint = "the vocabulary needs its unknown token: add it, or name it as `unk_token`"
    return TokenizerError(f"{what} ({reason})", where=where or None, hint=hint)
