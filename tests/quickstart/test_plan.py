from pathlib import Path

import pytest

from bertie.errors import FolderError, SpecError
from bertie.quickstart.plan import Place, Plan


def test_a_folder_goes_on_with_its_own_plan_alone(tmp_path: Path) -> None:
    place, wishes = Place(tmp_path / "deep" / "out"), {"minutes": 5, "texts": ("a.txt",), "language": "zh"}
    plan = place.begin(wishes)
    assert plan == Plan(minutes=5, texts=("a.txt",), language="zh")
    assert place.begin(wishes) == plan
    assert place.begin({}) == plan, "what is not said is as before"
    assert place.begin({"texts": ("b.txt",)}).texts == ("b.txt",), "nothing was done: a wrong name can be mended"
    plan = place.begin({"texts": ("a.txt",)})
    place.entries.touch()
    with pytest.raises(SpecError, match=r"minutes: 5\.0 before, 6\.0 now"):
        place.begin({"minutes": 6.0})
    with pytest.raises(SpecError, match="base: None before"):
        place.begin({"base": "my-model"})


def test_a_plan_is_told_in_words() -> None:
    assert Plan().words == []
    plan = Plan(minutes=2, texts=("a.txt", "b.txt"), language="zh", base="my-model")
    assert plan.words == ["--minutes", "2", "--text", "a.txt", "--text", "b.txt", "--lang", "zh", "--base", "my-model"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"file/out: cannot be written \(Not a directory\); name another folder"):
        Place(tmp_path / "file" / "out").begin({})


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FolderError, match="no quickstart"):
        Place(tmp_path).begin({})
    (tmp_path / "letter.txt").unlink()
    Place(tmp_path).begin({})
    (tmp_path / "quickstart.json").write_text("{")
    with pytest.raises(SpecError, match=r"quickstart\.json"):
        Place(tmp_path).begin({})


def test_the_documentation_is_english(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="give your own texts with --text"):
        Place(tmp_path / "out").begin({"language": "zh"})
    assert not (tmp_path / "out").exists()
