"""`bertie fill`: the words that a model puts into the gaps of a sentence."""

import dataclasses
import json

import typer

import bertie


def fill(
    folder: str = typer.Argument(..., help="A model folder with a masked-LM head, or a name on the hub."),
    text: str = typer.Argument(..., help="A sentence with [MASK] for each gap."),
    top: int = typer.Option(5, min=1, help="How many candidates for each gap."),
    max_length: int | None = typer.Option(None, help="Cut a longer text to this many tokens."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON list."),
) -> None:
    """Guess the missing words of a sentence."""
    guesses = bertie.load(folder).fill(text, top=top, max_length=max_length)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(guess) for guess in guesses], ensure_ascii=False))
        return
    num_gaps = guesses[-1].gap + 1
    for guess in guesses:
        gap = f"gap {guess.gap + 1}  " if num_gaps > 1 else ""
        typer.echo(f"{gap}{guess.probability:7.2%}  {guess.token}")
