from pathlib import Path

import pytest

from bertie.errors import FolderError, SpecError
from bertie.quickstart.plan import Place, Plan


def test_a_folder_goes_on_with_its_own_plan_alone(tmp_path: Path) -> None:
    place, plan = Place(tmp_path / "deep" / "out"), Plan(minutes=5, texts=("a.txt",), language="zh")
    place.begin(plan)
    place.begin(Plan(minutes=5, texts=("a.txt",), language="zh"))
    with pytest.raises(SpecError, match=r"minutes: 5\.0 before, 6\.0 now"):
        place.begin(plan.replace(minutes=6))


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FolderError, match="no quickstart"):
        Place(tmp_path).begin(Plan())
    (tmp_path / "letter.txt").unlink()
    Place(tmp_path).begin(Plan())
    (tmp_path / "quickstart.json").write_text("{")
    with pytest.raises(FolderError, match="cannot be read"):
        Place(tmp_path).begin(Plan())
