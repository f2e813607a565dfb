"""Misspelt texts: how many words, in which ways, and always the same for the same draws."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import InputError, SpecError
from bertie.text.noise import KINDS, Noise, NoiseKind, made_by, neighbours, read_groups, table

TEXT = "The quick brown fox doesn't jump over the lazy dog, and I never said so. 我在酒店住了一晚，服务很好！"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_rate_is_the_share_of_words() -> None:
    text = " ".join(["plain words of many lengths"] * 400)
    for rate in (0.0, 0.1, 0.3, 1.0):
        found = Noise(rate=rate)(text, rng())
        assert found.num_words == 2000
        assert found.num_changed / 2000 == pytest.approx(rate, abs=0.03)
    assert Noise(rate=0)(TEXT, rng()).text == TEXT


def test_every_changed_word_really_is_another() -> None:
    words = ["all", "a", "I", "oo", "see", "aa"] * 50
    for word in words:
        assert Noise(rate=1)(word, rng()).text != word
    text, num_words, num_changed = Noise(rate=1)("中国", rng())
    assert num_words == num_changed == 2 and text[0] != "中" and text[1] != "国"


def test_the_same_draws_give_the_same_text_and_a_higher_rate_adds_to_it() -> None:
    text = " ".join(f"word{chr(97 + number % 26) * 3}" for number in range(300))
    low, again, high = (Noise(rate=rate, kinds=("keyboard", "swap"))(text, rng(5)).text for rate in (0.1, 0.1, 0.4))
    assert low == again != Noise(rate=0.1)(text, rng(6)).text
    for clean, first, second in zip(text.split(), low.split(), high.split(), strict=True):
        assert first in (clean, second)


@pytest.mark.parametrize(
    ("kind", "word", "made"),
    [
        ("swap", "noon", {"onon", "nono"}),
        ("drop", "cat", {"at", "ct", "ca"}),
        ("drop", "a", set()),
        ("double", "cat", {"ccat", "caat", "catt"}),
        ("keyboard", "Q", {"W", "A", "S"}),
        ("keyboard", "мир", set()),
    ],
)
def test_what_a_mistake_makes_of_a_word(kind: str, word: str, made: set[str]) -> None:
    assert set(made_by(kind, word)) == made


def test_keys_are_neighbours_of_each_other() -> None:
    near = neighbours()
    assert len(near) == 26
    assert all(key in near[other] for key in near for other in near[key])


def test_a_space_is_lost_before_a_word_only() -> None:
    noise = Noise(rate=1, kinds=("space",))
    assert noise(" one two  three, four", rng()).text == " onetwo  three,four"
    assert noise("十 二", rng()).text == "十 二"


@pytest.mark.parametrize("kind", ["sound", "look"])
def test_tables_go_both_ways_and_never_to_the_sign_itself(kind: str) -> None:
    others = table(kind)
    assert len(others) > 300
    for sign, found in others.items():
        assert sign not in found and len(set(found)) == len(found)
        assert all(sign in others[other] for other in found)


def test_only_the_asked_kinds_are_used() -> None:
    assert Noise(rate=1, kinds=("sound",))("未 is", rng()).text != "未 is"
    for seed in range(10):
        assert Noise(rate=1, kinds=("look",))("在", rng(seed)).text in table("look")["在"]
        assert Noise(rate=1, kinds=("sound",))("在", rng(seed)).text in table("sound")["在"]
    assert Noise(rate=1, kinds=("look", "sound"))("clean words", rng()).text == "clean words"


def test_signs_of_no_table_stay_and_are_counted() -> None:
    assert Noise(rate=1)("龘靐", rng()) == ("龘靐", 2, 0)
    assert Noise(rate=1, groups=("龘靐",))("龘靐", rng()) == ("靐龘", 2, 2)


@given(st.text(), st.floats(0, 1), st.sets(st.sampled_from(KINDS)), st.integers(0, 99))
def test_any_text_is_taken(text: str, rate: float, kinds: set[NoiseKind], seed: int) -> None:
    found = Noise(rate=rate, kinds=tuple(sorted(kinds)))(text, rng(seed))
    assert 0 <= found.num_changed <= found.num_words
    assert (found.text == text) == (found.num_changed == 0)
    if "space" not in kinds:
        assert len(found.text.split()) == len(text.split())


def test_a_rate_is_a_share() -> None:
    with pytest.raises(SpecError):
        Noise.parse({"rate": 1.5})


def test_groups_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "groups.txt"
    file.write_text("# mine\n未末\n\n 土, 士、工\r\n", "utf-8")
    assert read_groups(file) == ("未末", "土士工")
    for wrong, told in (("未末\nab", "'a' is not an ideograph"), ("未末\n未未", "two different")):
        file.write_text(wrong, "utf-8")
        with pytest.raises(InputError, match=told) as error:
            read_groups(file)
        assert str(error.value).startswith(f"{file}:2: ")
    for empty in ("", "# none yet\n\n"):
        file.write_text(empty, "utf-8")
        with pytest.raises(InputError, match="there are no groups; write lines like 未末") as error:
            read_groups(file)
        assert str(error.value).startswith(f"{file}: ")
