"""How a score falls: points, what is drawn of them, and that they are measured on misspelt rows."""

import json
from pathlib import Path

from tests.tasks.learning import LENGTH, learned, tokenizer

from bertie.data.rows import open_rows
from bertie.reporting.text_chart import draw_text
from bertie.tasks.labelled import Labelled
from bertie.text.noise import Noise
from bertie.train.reports.noise_curve import NoiseCurve, NoisePoint, measure_noise

CURVE = NoiseCurve(
    "accuracy",
    [NoisePoint(0.0, 0.0, {"accuracy": 0.9}), NoisePoint(0.5, 0.48, {"accuracy": 0.6})],
)


def test_a_curve_in_words_and_on_a_page() -> None:
    assert CURVE.lines() == [
        "     noise    misspelt    accuracy",
        "        0%        0.0%      0.9000",
        "       50%       48.0%      0.6000",
    ]
    assert CURVE.chart.lines[0].points == [(0.0, 0.9), (50.0, 0.6)]
    drawn = draw_text(CURVE.chart)
    assert "accuracy of misspelt texts" in drawn[0] and "50 % of words" in drawn[-1]
    assert "<svg" in CURVE.section() and "48.0%" in CURVE.section()
    assert CURVE.points[1].as_dict() == {"rate": 0.5, "misspelt": 0.48, "accuracy": 0.6}


def test_the_rows_that_are_measured_are_misspelt(tmp_path: Path) -> None:
    known = learned("classify")
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in known.rows * 4))
    rows = Labelled(open_rows(tmp_path / "rows.jsonl"), {"text": "text", "label": "label"})
    noises = [Noise(rate=0.0), Noise(rate=1.0)]
    curve = measure_noise(known.model, known.task, rows, tokenizer(), LENGTH, noises)
    clean, spoilt = curve.points
    assert (clean.misspelt, clean.scores["accuracy"]) == (0.0, 1.0)
    assert spoilt.misspelt == 1.0 and spoilt.scores["accuracy"] < 1.0
    assert clean.num_cut == spoilt.num_cut == 0
    (short,) = measure_noise(known.model, known.task, rows, tokenizer(), 3, noises[:1]).points
    assert short.num_cut == rows.rows.num_rows, "all have more than one token"
    again = measure_noise(known.model, known.task, rows, tokenizer(), LENGTH, noises[1:])
    assert list(again.points) == [spoilt]
