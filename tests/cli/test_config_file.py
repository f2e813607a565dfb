"""Options in a file: the same as flags, under their names, and flags win."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bertie.cli.config_file import read_config, read_toml, settle, write_toml
from bertie.errors import InputError, SpecError

CONFIG = typer.Option(None, is_eager=True, callback=read_config)
OUT = typer.Option()


def invoke(*arguments: object) -> dict[str, Any]:
    app, seen = typer.Typer(), {}

    @app.command()
    def command(
        ctx: typer.Context,
        config: Path | None = CONFIG,
        out: Path = OUT,
        steps: int | None = typer.Option(None, min=1),
        time: str | None = typer.Option(None),
        base: str | None = typer.Option(None, "--from"),
        batch_tokens: int = typer.Option(64),
        lr: float = typer.Option(0.5),
    ) -> None:
        seen.update(settle(ctx, [("steps", "time")]))

    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen


def test_a_file_gives_what_flags_would(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('out = "x"\nsteps = 5\nfrom = "m"\nbatch_tokens = 1_000\nlr = 1e-3\n')
    seen = invoke("--config", file)
    assert (str(seen["out"]), seen["steps"], seen["base"], seen["batch_tokens"], seen["lr"]) == (
        "x",
        5,
        "m",
        1000,
        1e-3,
    )
    file.write_text('out = "x"\nbatch-tokens = 7\n')
    assert invoke("--lr", 2, "--config", file)["batch_tokens"] == 7


def test_flags_win(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('out = "x"\nsteps = 5\nlr = 0.1\n')
    seen = invoke("--config", file, "--lr", 0.2, "--out", "y")
    assert (seen["lr"], str(seen["out"]), seen["steps"]) == (0.2, "y", 5)
    seen = invoke("--config", file, "--time", "5m")
    assert (seen["steps"], seen["time"]) == (None, "5m"), "also where they say the same in another way"


def test_one_thing_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--steps and --time cannot both be given"):
        invoke("--out", "x", "--steps", 4, "--time", "5m")
    file = tmp_path / "c.toml"
    file.write_text('out = "x"\nsteps = 5\ntime = "3m"\n')
    with pytest.raises(SpecError, match="cannot both be given"):
        invoke("--config", file)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("batch-token = 5", r"c\.toml: there is no option 'batch-token'; did you mean 'batch-tokens'\?"),
        ("config = 'x'", "there is no option 'config'"),
        ("zzzz = 1", "there is no option 'zzzz'; see the options in --help"),
        ("steps = 'many'", r"c\.toml: steps: .*integer"),
        ("steps = 0", r"c\.toml: steps: "),
        ("steps = [1, 2]", "one value was expected"),
        ("[steps]\na = 1", "one value was expected"),
    ],
)
def test_mistakes_are_told_with_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(SpecError, match=complaint):
        invoke("--config", tmp_path / "c.toml", "--out", "x")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read as TOML"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "c.toml").write_text("a = = b")
    with pytest.raises(InputError, match="cannot be read as TOML"):
        read_toml(tmp_path / "c.toml")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    options = {"out": 'a "b" \\ ü', "steps": 5, "lr": 1e-05, "batch-tokens": None, "fine": True}
    (tmp_path / "c.toml").write_text(write_toml(options), encoding="utf-8")
    assert read_toml(tmp_path / "c.toml") == {name: value for name, value in options.items() if value is not None}
