"""What can be wrong with the input of a corpus build, and that nothing stands in the way once it was mended."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bertie.data.build import BuildOptions, add_to_corpus, build_corpus, signing
from bertie.data.build import build_run as run
from bertie.data.corpus import Corpus
from bertie.errors import InputError, UserError
from bertie.text.reading.documents import DocumentOptions
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

READING = DocumentOptions(slice_bytes=40)
NO_SEARCH = BuildOptions(duplicates=False, near_duplicates=False, paragraphs="off")
LETTERS = "abcdefghijklmnopqrstuvwxyz."


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    path.write_text("".join(f"{piece}\n" for piece in pieces))
    found = load_tokenizer(path)
    assert found is not None
    return found


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Three files of two slices each."""
    paths = [tmp_path / f"{name}.txt" for name in ("one", "two", "three")]
    for path in paths:
        path.write_text("".join(f"{path.stem} text {letter} with some words.\n\n" for letter in "abcd"))
    return paths


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Builds until so many parts were compared."""

    def build(num_parts: int, *given: Any, **named: Any) -> None:
        calls = 0

        def sign(*work: Any) -> dict[str, int]:
            nonlocal calls
            calls += 1
            if calls > num_parts:
                raise KeyboardInterrupt
            return signing.sign(*work)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(run, "sign", sign)
            build_corpus(*given, **named, reading=READING)

    return build


@pytest.mark.parametrize("options", [BuildOptions(), NO_SEARCH])
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_mistake_in_the_first_part_leaves_nothing_behind(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], options: BuildOptions, workers: int
) -> None:
    good = sources[0].read_bytes()
    sources[0].write_bytes(b"caf\xe9 " + good)
    with pytest.raises(InputError, match="not UTF-8") as refusal:
        build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING, num_workers=workers)
    assert not (tmp_path / "c").exists() or workers > 1, "with several workers another part may be finished"
    if workers == 1:
        assert "the same command" not in str(refusal.value), "there is nothing to continue"
    sources[0].write_bytes(good)
    report = build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING, num_workers=workers)
    assert report.manifest.num_documents == 12


@pytest.mark.parametrize("options", [BuildOptions(), NO_SEARCH])
def test_a_mended_input_goes_on_with_what_is_as_before(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], options: BuildOptions
) -> None:
    good = sources[1].read_bytes()
    sources[1].write_bytes(good + b"caf\xe9\n")
    with pytest.raises(InputError, match=r"not UTF-8.*; then run it again: it continues") as refusal:
        build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING)
    assert "\n" not in str(refusal.value)
    sources[1].write_bytes(good + b"caffe with other words\n")
    report = build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING)
    assert sum(report.resumed.values()) >= 2
    build_corpus(tmp_path / "undisturbed", sources, tokenizer, options, reading=READING)
    assert files_of(tmp_path / "c") == files_of(tmp_path / "undisturbed")


def test_a_mended_input_may_be_shorter_than_what_was_finished(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path]
) -> None:
    sources[2].write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8"):
        build_corpus(tmp_path / "c", sources, tokenizer, NO_SEARCH, reading=READING)
    build_corpus(tmp_path / "c", sources[:1], tokenizer, NO_SEARCH, reading=READING)
    build_corpus(tmp_path / "undisturbed", sources[:1], tokenizer, NO_SEARCH, reading=READING)
    assert files_of(tmp_path / "c") == files_of(tmp_path / "undisturbed")


def test_a_mistake_in_the_way_of_reading_can_be_mended_by_an_option(tmp_path: Path, tokenizer: Tokenizer) -> None:
    lines = [f'{{"text": "text {letter} of a line."}}\n' for letter in "abcd"]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join([*lines, '{"text": null}\n']))
    with pytest.raises(InputError, match="null"):
        build_corpus(tmp_path / "c", [source], tokenizer, reading=READING)
    reading = READING.replace(null_as_empty=True)
    assert build_corpus(tmp_path / "c", [source], tokenizer, reading=reading).manifest.num_documents == 4


def test_a_mistake_in_an_option_that_shows_later_leaves_nothing_behind(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ftfy", None)
    options = BuildOptions().replace(cleaning={"fix_encoding": True})
    with pytest.raises(UserError, match="ftfy"):
        build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING)
    assert not (tmp_path / "c").exists()


def test_an_option_that_differs_is_told_by_its_name(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], interrupted: Callable[..., None]
) -> None:
    interrupted(2, tmp_path / "c", sources, tokenizer)
    options = BuildOptions().replace(near_duplicates=False, cleaning={"min_characters": 5})
    told = r"`keep_near_duplicates` was false and is now true; `min_characters` was 0 and is now 5; use"
    with pytest.raises(UserError, match=told):
        build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING)


def test_files_in_another_order_are_another_input(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], interrupted: Callable[..., None]
) -> None:
    interrupted(2, tmp_path / "c", sources, tokenizer)
    with pytest.raises(UserError, match="the order of the files was"):
        build_corpus(tmp_path / "c", sources[::-1], tokenizer, reading=READING)


def test_other_text_in_the_pipe_is_refused_and_the_same_goes_on(
    tmp_path: Path, tokenizer: Tokenizer, interrupted: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"text {letter} of the pipe.\n\n" for letter in "abcdefgh")
    pipe(monkeypatch, text)
    interrupted(2, tmp_path / "c", ["-"], tokenizer)
    for other in (text.replace("text h", "text i"), ""):
        pipe(monkeypatch, other)
        with pytest.raises(UserError, match=r"standard input was .* and is now .*`restart`") as refusal:
            build_corpus(tmp_path / "c", ["-"], tokenizer, reading=READING)
        assert "\n" not in str(refusal.value)
    pipe(monkeypatch, text)
    report = build_corpus(tmp_path / "c", ["-"], tokenizer, reading=READING)
    assert report.resumed == {"signatures": 2} and report.manifest.num_documents == 8


def test_a_build_does_not_go_on_with_an_unfinished_add(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    build_corpus(tmp_path / "c", sources[:1], tokenizer, reading=READING)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run, "tokenise", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt()))
        add_to_corpus(tmp_path / "c", sources[1:], tokenizer, reading=READING)
    with pytest.raises(UserError, match='the command was "bertie corpus add" and is now "bertie corpus build"'):
        build_corpus(tmp_path / "c", sources[1:], tokenizer, reading=READING)
    add_to_corpus(tmp_path / "c", sources[1:], tokenizer, reading=READING)
    assert Corpus.open(tmp_path / "c").num_documents == 12


def test_a_killed_restart_goes_on_and_the_old_corpus_is_there_until_then(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path], interrupted: Callable[..., None]
) -> None:
    build_corpus(tmp_path / "c", sources[:1], tokenizer, reading=READING)
    interrupted(2, tmp_path / "c", sources, tokenizer, restart=True)
    assert Corpus.open(tmp_path / "c", tokenizer).num_documents == 4
    assert not any(faults for _, faults in Corpus.open(tmp_path / "c").verify())
    report = build_corpus(tmp_path / "c", sources, tokenizer, reading=READING)
    assert report.resumed == {"signatures": 2} and report.manifest.num_documents == 12


@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_an_input_without_documents_is_one_sentence(tmp_path: Path, tokenizer: Tokenizer, content: str) -> None:
    (tmp_path / "empty.txt").write_text(content)
    for options in (BuildOptions(), NO_SEARCH):
        with pytest.raises(InputError, match=r"empty.txt: there is no document in the input; give"):
            build_corpus(tmp_path / "c", [tmp_path / "empty.txt"], tokenizer, options)
    assert not (tmp_path / "c").exists()


def test_an_input_of_which_nothing_is_left_is_told_with_counts(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path]
) -> None:
    options = BuildOptions().replace(cleaning={"min_characters": 1000})
    with pytest.raises(InputError, match=r"of 12 documents none is left \(12 empty or short documents\); give"):
        build_corpus(tmp_path / "c", sources, tokenizer, options, reading=READING)
    assert not (tmp_path / "c").exists()
    assert build_corpus(tmp_path / "c", sources, tokenizer, reading=READING).manifest.num_documents == 12


def test_adding_nothing_is_refused_and_adding_what_is_there_is_counted(
    tmp_path: Path, tokenizer: Tokenizer, sources: list[Path]
) -> None:
    build_corpus(tmp_path / "c", sources[:1], tokenizer)
    (tmp_path / "empty.txt").touch()
    before = files_of(tmp_path / "c")
    with pytest.raises(InputError, match="there is no document"):
        add_to_corpus(tmp_path / "c", [tmp_path / "empty.txt"], tokenizer)
    assert files_of(tmp_path / "c") == before
    report = add_to_corpus(tmp_path / "c", sources[:1], tokenizer)
    assert report.manifest.num_documents == 4 and report.manifest.layers[1].dropped == {"duplicate documents": 4}
