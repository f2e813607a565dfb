"""How far a model's score falls with misspelt words: a model folder and rows enter, figures and a curve leave.

`python -m experiments.noise_scores NAME --model FOLDER --rows FILE --rates 0,0.1 --out FILE`: what `bertie evaluate
--noise` says, in the form of a result. Percents of words are the curve's first axis.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.cell import Result


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the set")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--rates", required=True)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--skip-bad", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    found = result(options.name, options.metric, measured(options))
    options.out.write_text(json.dumps(found) + "\n", "utf-8")


def measured(options: argparse.Namespace) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "bertie.cli.app", "evaluate", str(options.model), "--data", str(options.rows)]
    command += ["--noise", options.rates, "--json", *(["--skip-bad"] if options.skip_bad else [])]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout
    points: list[dict[str, float]] = json.loads(printed)["noise"]
    return points


def result(name: str, metric: str, points: Sequence[Mapping[str, Any]]) -> Result:
    percents = [round(100 * point["rate"]) for point in points]
    scores = [point[metric] for point in points]
    figures = {f"{name}_{metric}_{percent}": score for percent, score in zip(percents, scores, strict=True)}
    shares = {f"{name}_misspelt_{percent}": point["misspelt"] for percent, point in zip(percents, points, strict=True)}
    return {
        "figures": {**figures, **shares},
        "curves": {name: [[percent, score] for percent, score in zip(percents, scores, strict=True)]},
    }


if __name__ == "__main__":
    main()
