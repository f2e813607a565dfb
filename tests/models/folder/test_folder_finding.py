"""Where a model comes from: folders, run folders, hub names without a network."""

from pathlib import Path

import pytest

import bertie
from bertie.errors import FolderError
from bertie.models.folder.folder_finding import find_folder


def test_a_folder_is_itself(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    assert find_folder(tmp_path) == find_folder(str(tmp_path)) == tmp_path


def test_a_run_folder_holds_its_model(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert find_folder(tmp_path) == tmp_path / "model"
    (tmp_path / "config.json").touch()
    assert find_folder(tmp_path) == tmp_path


def test_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    assert find_folder("~/mine") == tmp_path / "mine"


@pytest.mark.parametrize("name", ["no/such/folder", "gone/", "./gone", "../gone"])
def test_a_missing_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FolderError, match=r"gone|folder: there is no such folder"):
        find_folder(f"{tmp_path}/{name}")
    with pytest.raises(FolderError, match="no such folder"):
        find_folder(name)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(FolderError, match=r"model.safetensors: is a file, not a model folder; give the folder"):
        find_folder(file)


@pytest.mark.parametrize("name", ["bert-base-uncased", "google-bert/bert-base-uncased", "typo"])
def test_a_hub_name_without_a_network_says_what_to_do(name: str) -> None:
    with pytest.raises(FolderError) as caught:
        find_folder(name)
    told = str(caught.value)
    assert told.startswith(f"{name}: is not a folder here, and the download from the hub failed")
    assert f"check the path, or run `hf download {name}` on a machine with network access and copy the folder" in told
    assert "\n" not in told


def test_no_name_at_all_is_not_the_folder_one_stands_in() -> None:
    with pytest.raises(FolderError):
        find_folder("")


@pytest.mark.parametrize("name", ["my-modle", "./my-modle", "my-modle/", "my_model", "my-modle/model"])
def test_a_mistyped_folder_is_named_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "my-model").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FolderError, match=r"there is no such folder; did you mean my-model\?") as caught:
        find_folder(name)
    assert "hf download" not in str(caught.value)
    with pytest.raises(FolderError, match=r"there is no such folder; did you mean .*/my-model\?"):
        find_folder(tmp_path / name)


@pytest.mark.parametrize("name", ["./gone", "a/b/c", "~/gone-from-home", "gone/", "/gone", "../gone"])
def test_a_path_is_not_looked_for_on_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "bertie.models.folder.folder_finding.snapshot_download", lambda *_, **__: pytest.fail("asked the hub")
    )
    with pytest.raises(FolderError, match=r"there is no such folder; check the path"):
        find_folder(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a" * 300, "cannot be read .File name too long"),
        ("a/" * 3000, "cannot be read .File name too long"),
        ("a\0b", "a name cannot contain the character NUL"),
        ("~nosuchuser/model", "there is no such home folder"),
        ("loop", "is a link that leads nowhere"),
        ("nowhere", "is a link that leads nowhere"),
        ("not\udcffutf8", "the name is not UTF-8; rename the folder"),
        ("/dev/zero", "is a file, not a model folder"),
    ],
)
def test_a_name_that_no_folder_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("gone")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FolderError, match=told) as caught:
        bertie.load(name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    str(caught.value).encode("utf-8")
