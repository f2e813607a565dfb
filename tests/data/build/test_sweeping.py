from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.build import BuildOptions, add_to_corpus, build_corpus
from bertie.data.build.sweeping import next_layer, sweep
from bertie.data.corpus import Corpus
from bertie.errors import InputError
from bertie.text.tokenizer import Tokenizer


def numbered_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(("shard-", "signatures-")))


def test_only_what_no_manifest_names_is_swept(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be."])], tokenizer)
    named = numbered_files(target)
    for name in ("shard-07-000000-000000.arrow", "signatures-00-old.npy", "shard-00-1.arrow.12.part", "notes.txt"):
        (target / name).touch()
    assert next_layer(target) == 8
    sweep(target)
    assert numbered_files(target) == named and (target / "notes.txt").exists()
    assert next_layer(target) == 1


@pytest.mark.parametrize("options", [BuildOptions(), BuildOptions(duplicates=False, near_duplicates=False)])
def test_a_restart_after_add_leaves_nothing_of_the_old_corpus(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], options: BuildOptions
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be.", "bi bo."])], tokenizer)
    add_to_corpus(target, [write_documents(["da de."], "more.jsonl")], tokenizer)
    manifest = build_corpus(target, [write_documents(["fa fe."])], tokenizer, options, restart=True).manifest
    assert numbered_files(target) == sorted(entry.name for entry in (*manifest.shards, *manifest.signatures))
    assert Corpus.open(target).num_documents == 1 and not any(faults for _, faults in Corpus.open(target).verify())
    add_to_corpus(target, [write_documents(["ga ge."], "third.jsonl")], tokenizer)
    assert Corpus.open(target).num_documents == 2 and not any(faults for _, faults in Corpus.open(target).verify())


@pytest.mark.parametrize("options", [BuildOptions(), BuildOptions(duplicates=False, paragraphs="off")])
def test_a_restart_whose_input_cannot_be_read_leaves_the_corpus_as_it_was(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], options: BuildOptions
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be.", "bi bo."])], tokenizer)
    before = {path: path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()}
    (tmp_path / "latin.txt").write_bytes(b"ba be.\n\ncaf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8"):
        build_corpus(target, [tmp_path / "latin.txt"], tokenizer, options, restart=True)
    assert {path: path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()} == before


def test_restarting_an_add_forgets_the_add_and_not_the_corpus(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    build_corpus(tmp_path / "c", [write_documents(["ba be.", "bi bo."])], tokenizer)
    add_to_corpus(tmp_path / "c", [write_documents(["da de."], "more.jsonl")], tokenizer, restart=True)
    assert Corpus.open(tmp_path / "c").num_documents == 3


def test_a_corpus_of_an_unknown_version_can_be_built_anew(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    source = write_documents(["ba be."])
    build_corpus(tmp_path / "c", [source], tokenizer)
    (tmp_path / "c" / "manifest.json").write_text('{"version": 0}')
    manifest = build_corpus(tmp_path / "c", [source], tokenizer, restart=True).manifest
    assert numbered_files(tmp_path / "c") == sorted(entry.name for entry in (*manifest.shards, *manifest.signatures))
