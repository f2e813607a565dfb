from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.build.build_options import BuildOptions, Setup
from bertie.data.build.parts import Work
from bertie.data.build.tokenising import script_language, tokenise, with_leading_spaces
from bertie.data.shards import CorpusDocument, Shard
from bertie.text.reading.documents import Document
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.vocab.building import train_vocabulary
from bertie.text.vocab.pipelines import Trained, build_tokenizer
from bertie.text.vocab.vocab_options import VocabOptions


def tokenised(
    tmp_path: Path, vocabulary: Path, texts: list[str], options: BuildOptions | None = None
) -> tuple[dict[str, Any], list[CorpusDocument]]:
    setup = Setup(tmp_path, 0, vocabulary, options or BuildOptions())
    work = Work("000000-000000", [Document(text, f"text {number}", "") for number, text in enumerate(texts)], 0)
    facts = tokenise(setup, {}, work)
    return facts, list(Shard(tmp_path / facts["shard"]["name"])) if facts["shard"] else []


def words_of(document: CorpusDocument, tokenizer: Tokenizer) -> list[str]:
    """The pieces of each word, joined."""
    numbers = document.word_numbers
    pieces = [tokenizer.token_of(int(id)) for id in document.ids]
    return [
        "".join(piece.removeprefix("##") for piece, at in zip(pieces, numbers, strict=True) if at == word)
        for word in range(int(numbers[-1]) + 1)
    ]


def test_ids_sentences_and_words_are_those_of_the_text(tmp_path: Path, vocabulary: Path, tokenizer: Tokenizer) -> None:
    facts, (document,) = tokenised(tmp_path, vocabulary, ["Bada gika doru. Felo mina.\nTuza."])
    assert document.ids.tolist() == tokenizer.encode_pieces(["bada gika doru. felo mina. tuza."]).ids.tolist()
    assert words_of(document, tokenizer) == ["bada", "gika", "doru", ".", "felo", "mina", ".", "tuza", "."]
    starts = [words_of(document, tokenizer)[document.word_numbers[start]] for start in document.sentences]
    assert starts == ["bada", "felo", "tuza"]
    assert document.name == "text 0"
    assert facts["counts"]["paragraphs"] == 2 and facts["counts"]["documents read"] == 1


def test_chinese_words_are_kept_as_units_beside_english_ones(
    tmp_path: Path, vocabulary: Path, tokenizer: Tokenizer
) -> None:
    _, (document,) = tokenised(tmp_path, vocabulary, ["使用语言模型来预测下一个词的badagika"])
    words = words_of(document, tokenizer)
    assert {"使用", "语言", "模型", "预测", "badagika"} <= set(words)
    assert "".join(words) == "使用语言模型来预测下一个词的badagika"


def test_a_dictionary_makes_words(tmp_path: Path, vocabulary: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "words.txt").write_text("语言模型 100000\n", encoding="utf-8")
    options = BuildOptions(dictionary=tmp_path / "words.txt")
    _, (document,) = tokenised(tmp_path, vocabulary, ["使用语言模型来预测"], options)
    assert "语言模型" in words_of(document, tokenizer)


def test_words_that_were_separated_before_are_kept(tmp_path: Path, vocabulary: Path, tokenizer: Tokenizer) -> None:
    _, (document,) = tokenised(tmp_path, vocabulary, ["使用 语言模型 来预测"], BuildOptions(segmenter="spaces"))
    assert words_of(document, tokenizer) == ["使用", "语言模型", "来预测"]


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram"])
def test_chinese_words_are_units_of_pieces_that_join_characters_too(tmp_path: Path, kind: str) -> None:
    (tmp_path / "words.txt").write_text("语言\n\n模型\n\n预测\n\n的\n\nprobability\n\n来\n\n用\n", encoding="utf-8")
    options = VocabOptions(kind=kind, size=400, min_frequency=1, held_out=0)
    train_vocabulary([tmp_path / "words.txt"], tmp_path / "vocabulary", options)
    facts, (document,) = tokenised(tmp_path, tmp_path / "vocabulary", ["用语言模型来预测的probability"])
    tokenizer = load_tokenizer(tmp_path / "vocabulary")
    assert tokenizer is not None
    numbers = document.word_numbers
    words = [tokenizer.decode(document.ids[numbers == word]).strip() for word in range(int(numbers[-1]) + 1)]
    assert words == ["用", "语言", "模型", "来", "预测", "的", "probability"]
    assert "word boundaries inside a token" not in facts["counts"]


def test_without_sentences_a_paragraph_is_one(tmp_path: Path, vocabulary: Path) -> None:
    _, (document,) = tokenised(tmp_path, vocabulary, ["Ba da. Go ki.\nFe lo."], BuildOptions(sentences=False))
    assert len(document.sentences) == 2


def test_what_is_left_out_is_counted(tmp_path: Path, vocabulary: Path) -> None:
    texts = ["", " \n ", "ba", "Bada gika doru felo."]
    options = BuildOptions(cleaning=BuildOptions().cleaning.replace(min_characters=5))
    facts, documents = tokenised(tmp_path, vocabulary, texts, options)
    assert len(documents) == 1 and facts["dropped"] == {"empty or short documents": 3}
    assert facts["counts"]["documents read"] == 4


def test_a_part_of_nothing_has_no_shard(tmp_path: Path, vocabulary: Path) -> None:
    facts, documents = tokenised(tmp_path, vocabulary, ["", ""])
    assert facts["shard"] is None and documents == [] and list(tmp_path.glob("*.arrow")) == []


def test_unknown_tokens_are_counted(tmp_path: Path, vocabulary: Path) -> None:
    facts, _ = tokenised(tmp_path, vocabulary, ["bada Ω gika"])
    assert facts["counts"]["unknown tokens"] == 1


def test_blocks_do_not_change_what_is_written(
    tmp_path: Path, vocabulary: Path, random_documents: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = random_documents(3, 30)
    _, whole = tokenised(tmp_path, vocabulary, texts)
    monkeypatch.setattr("bertie.data.build.tokenising.BLOCK_CHARACTERS", 100)
    _, cut = tokenised(tmp_path, vocabulary, texts)
    for first, second in zip(whole, cut, strict=True):
        for field in ("ids", "sentences", "words"):
            np.testing.assert_array_equal(getattr(first, field), getattr(second, field))


@pytest.mark.parametrize(
    ("text", "language"),
    [("plain words", "en"), ("naïve café", "en"), ("今天天气很好", "zh"), ("今日はいい天気です", "ja"),
     ("a long English sentence with one word 词 in it", "en"), ("用BERT模型", "zh")],
)  # fmt: skip
def test_the_script_tells_the_language(text: str, language: str) -> None:
    assert script_language(text) == language


def test_spaces_move_to_the_sentence_that_they_precede() -> None:
    assert with_leading_spaces(["One. ", "Two.  ", "Three."]) == ["One.", " Two.", "  Three."]


def test_words_that_a_piece_joins_are_counted(tmp_path: Path) -> None:
    options = VocabOptions(kind="unigram")
    pieces = [*options.all_special, "▁", *"使用语言模型来", "言模"]
    build_tokenizer(options, Trained(pieces, scores=[-1.0] * len(pieces))).save(tmp_path / "vocabulary")
    facts, (document,) = tokenised(tmp_path, tmp_path / "vocabulary", ["使用语言模型来"])
    assert facts["counts"]["word boundaries inside a token"] == 1
    assert document.words.sum() == 3  # 使用, 语言模型, 来


def test_byte_pieces_of_sentences_are_those_of_the_running_text(tmp_path: Path, shared: Path) -> None:
    folder = shared / "vocab" / "gpt2"
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    text = "This is one sentence. Here is another one! And a third."
    _, (document,) = tokenised(tmp_path, folder, [text])
    assert document.ids.tolist() == tokenizer.encode_pieces([text]).ids.tolist()
    assert len(document.sentences) == 3
