"""The tools that a corpus was cut with: kept, compared before text is added, and used again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.build import BuildOptions, add_to_corpus, build_corpus
from bertie.data.corpus import Corpus
from bertie.disk import sealed
from bertie.errors import FolderError, UserError
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

CHINESE = "使用语言模型来预测下一个词的概率。"


def words_of(corpus: Corpus, number: int) -> int:
    return int(corpus.document(number).words.sum())


def test_add_refuses_another_segmenter_or_splitter_with_both_shown(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    build_corpus(tmp_path / "c", [write_documents(["ba be bi."])], tokenizer)
    path = tmp_path / "c" / "manifest.json"
    content = json.loads(path.read_text())
    now = content["tools"]["sentences"]
    content["tools"]["sentences"] = "sentencex 0.0.1"
    path.write_bytes(sealed(json.dumps({key: value for key, value in content.items() if key != "sha256"}, indent=1)))
    before = path.read_bytes()
    with pytest.raises(FolderError, match=f"sentences was 'sentencex 0.0.1' and is now '{now}'"):
        add_to_corpus(tmp_path / "c", [write_documents(["bo bu."], "more.jsonl")], tokenizer)
    assert path.read_bytes() == before and not (tmp_path / "c" / ".build").exists()


def test_add_uses_the_dictionary_that_the_corpus_was_built_with(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    dictionary = tmp_path / "words.txt"
    dictionary.write_text("语言模型 100000\n", encoding="utf-8")
    options = BuildOptions(dictionary=dictionary)
    for name, chosen in (("with", options), ("without", BuildOptions())):
        build_corpus(tmp_path / name, [write_documents([f"{CHINESE}一"])], tokenizer, chosen)
    dictionary.write_text("预测下一个词 100000\n", encoding="utf-8")
    for name in ("with", "without"):
        add_to_corpus(tmp_path / name, [write_documents([f"{CHINESE}二"], "more.jsonl")], tokenizer)
    first, second = Corpus.open(tmp_path / "with"), Corpus.open(tmp_path / "without")
    assert words_of(first, 0) == words_of(first, 1) == words_of(second, 0) - 1 == words_of(second, 1) - 1
    assert first.manifest.layers[0].options == first.manifest.layers[1].options


def test_a_build_goes_on_only_with_the_same_dictionary_whatever_its_path(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = write_documents([CHINESE])
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("语言模型\n", encoding="utf-8")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("bertie.data.build.build_run.tokenise", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt()))
        build_corpus(tmp_path / "c", [source], tokenizer, BuildOptions(dictionary=first))
    second.write_text("预测\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"segmenter was .* and is now"):
        build_corpus(tmp_path / "c", [source], tokenizer, BuildOptions(dictionary=second))
    second.write_text("语言模型\n", encoding="utf-8")
    report = build_corpus(tmp_path / "c", [source], tokenizer, BuildOptions(dictionary=second))
    assert report.resumed == {"signatures": 1}


@pytest.mark.parametrize("name", ["tokenizer/tokenizer.json", "tokenizer/dictionary.txt"])
def test_a_changed_byte_in_a_tool_is_found_and_nothing_is_added_with_it(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], name: str
) -> None:
    (tmp_path / "words.txt").write_text("语言模型\n", encoding="utf-8")
    source, options = write_documents([CHINESE]), BuildOptions(dictionary=tmp_path / "words.txt")
    build_corpus(tmp_path / "c", [source], tokenizer, options)
    corpus = Corpus.open(tmp_path / "c")
    assert not any(faults for _, faults in corpus.verify())
    path = tmp_path / "c" / name
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    assert [entry.name for entry, faults in corpus.verify() if faults] == [name]
    with pytest.raises(FolderError, match=f"{name} has other bytes"):
        add_to_corpus(tmp_path / "c", [source], tokenizer)


def test_a_restart_with_another_tokenizer_cuts_with_that_one(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    source = write_documents(["babe bibo"])
    build_corpus(tmp_path / "c", [source], tokenizer)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "babe", "bibo"]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary))
    other = load_tokenizer(tmp_path / "vocab.txt")
    assert other is not None
    build_corpus(tmp_path / "c", [source], other, restart=True)
    corpus = Corpus.open(tmp_path / "c", other)
    assert corpus.document(0).ids.tolist() == [5, 6]
    kept = load_tokenizer(tmp_path / "c" / "tokenizer")
    assert kept is not None and kept.digest == other.digest


def test_a_restart_leaves_no_file_of_the_old_tools_that_could_be_read(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    (tmp_path / "words.txt").write_text("语言模型\n", encoding="utf-8")
    source, options = write_documents([CHINESE]), BuildOptions(dictionary=tmp_path / "words.txt")
    build_corpus(tmp_path / "c", [source], tokenizer, options)
    (tmp_path / "c" / "tokenizer" / "spiece.model").touch()
    manifest = build_corpus(tmp_path / "c", [source], tokenizer, restart=True).manifest
    kept = {f"tokenizer/{path.name}" for path in (tmp_path / "c" / "tokenizer").iterdir()}
    assert kept == {entry.name for entry in manifest.tool_files} and "tokenizer/dictionary.txt" not in kept


def test_a_restart_killed_among_its_tools_says_so_and_is_finished_by_the_same_command(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_documents(["babe bibo"])
    build_corpus(tmp_path / "c", [source], tokenizer)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "babe", "bibo"]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary))
    other = load_tokenizer(tmp_path / "vocab.txt")
    assert other is not None
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("bertie.data.manifest.Manifest.write", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt()))
        build_corpus(tmp_path / "c", [source], other, restart=True)
    assert Corpus.open(tmp_path / "c", tokenizer).num_documents == 1
    with pytest.raises(FolderError, match="a build was stopped here: run it again to finish it"):
        Corpus.open(tmp_path / "c", load_tokenizer(tmp_path / "c" / "tokenizer"))
    build_corpus(tmp_path / "c", [source], other)
    corpus = Corpus.open(tmp_path / "c", load_tokenizer(tmp_path / "c" / "tokenizer"))
    assert corpus.document(0).ids.tolist() == [5, 6] and not any(faults for _, faults in corpus.verify())
