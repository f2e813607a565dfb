import pickle
from pathlib import Path

import pytest

from bertie.errors import InputError, SpecError
from bertie.text.segmenters import JiebaSegmenter, SpaceSegmenter, load_segmenter, read_dictionary

TEXT = "使用语言模型来预测下一个词的probability"


def write(folder: Path, text: str) -> Path:
    path = folder / "words.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_user_dictionary_joins_words(tmp_path: Path) -> None:
    assert {"语言", "模型", "预测", "probability"} <= set(JiebaSegmenter().cut(TEXT))
    own = load_segmenter("jieba", write(tmp_path, "# mine\n\n语言模型\n下一个 100000 n\n"))
    assert own is not None
    words = own.cut(TEXT)
    assert {"语言模型", "下一个", "预测"} <= set(words)
    assert "".join(words) == TEXT


def test_the_digest_tells_what_decides_the_words(tmp_path: Path) -> None:
    path = write(tmp_path, "语言模型\n")
    first, same = (JiebaSegmenter(read_dictionary(path)) for _ in range(2))
    others = (
        JiebaSegmenter(),
        JiebaSegmenter((("语言模型", 5),)),
        JiebaSegmenter((("语言模型", None),), new_words=False),
    )
    assert first.digest == same.digest
    assert len({first.digest, SpaceSegmenter().digest, *(other.digest for other in others)}) == 5


def test_a_pickled_segmenter_knows_its_dictionary(tmp_path: Path) -> None:
    own = JiebaSegmenter((("语言模型", None),))
    own.cut(TEXT)
    again = pickle.loads(pickle.dumps(own))
    assert again.cut(TEXT) == own.cut(TEXT)
    assert again.digest == own.digest


def test_spaces_cut_and_punctuation_comes_off() -> None:
    assert [word for word in SpaceSegmenter().cut("使用 语言模型。 ok") if word.strip()] == [
        "使用",
        "语言模型",
        "。 ",
        "ok",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("好\n语言模型 many\n", "words.txt:2: the frequency 'many'"),
        ("语言模型 0\n", "words.txt:1: the frequency '0'"),
        ("a b c d\n", "words.txt:1: the line has 4 columns"),
        ("语言 3\n语言 4\n", "words.txt:2: '语言' has another frequency on line 1"),
    ],
)
def test_mistakes_in_a_dictionary_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_dictionary(write(tmp_path, text))
    assert message in str(raised.value)


def test_choices() -> None:
    assert load_segmenter("none") is None
    with pytest.raises(SpecError, match="uses no dictionary"):
        load_segmenter("spaces", Path("words.txt"))
    with pytest.raises(InputError, match="no such file"):
        load_segmenter("jieba", Path("/nowhere/words.txt"))
