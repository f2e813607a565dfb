import gzip
import itertools
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from bertie.data.build.build_options import BuildOptions, Setup
from bertie.data.build.parts import Work
from bertie.data.build.repeats import PLACES, WHOLE, DropLog, Signed, find_near, mapped
from bertie.data.build.signing import DOCUMENTS, PARAGRAPHS, bands_path, places_path, sign
from bertie.data.duplicates import BAND, NUM_BANDS
from bertie.text.reading.documents import Document

NEAR = BuildOptions(paragraphs="near")
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
LONG += "eighteen nineteen twenty"


def signed(folder: Path, part: str, texts: list[str], options: BuildOptions = NEAR) -> Setup:
    setup = Setup(folder, 0, folder, options)
    setup.signatures.mkdir(parents=True, exist_ok=True)
    sign(setup, Work(part, [Document(text, "", "") for text in texts], 0))
    return setup


def test_only_texts_of_some_length_are_compared(tmp_path: Path) -> None:
    setup = signed(tmp_path, "a", [f"short\n{LONG}", "short", f"{LONG}\nx\n{LONG}"])
    documents, paragraphs = (mapped(places_path(setup, "a", level)) for level in (DOCUMENTS, PARAGRAPHS))
    assert documents.tolist() == [(0, WHOLE), (2, WHOLE)]
    assert paragraphs.tolist() == [(0, 1), (2, 0), (2, 2)]
    rows = mapped(bands_path(setup, "a", PARAGRAPHS))
    assert rows.shape == (NUM_BANDS, 3, BAND) and (rows[:, 0] == rows[:, 1]).all()


def test_a_part_without_text_has_empty_files(tmp_path: Path) -> None:
    setup = signed(tmp_path, "a", ["", " "])
    for level in (DOCUMENTS, PARAGRAPHS):
        assert mapped(bands_path(setup, "a", level)).shape == (NUM_BANDS, 0, BAND)
        assert mapped(places_path(setup, "a", level)).dtype == PLACES


def test_line_breaks_do_not_hide_a_copy(tmp_path: Path) -> None:
    setup = signed(tmp_path, "a", [LONG, LONG.replace(" ", "\n")])
    rows = mapped(bands_path(setup, "a", DOCUMENTS))
    assert (rows[:, 0] == rows[:, 1]).all()


def changed(text: str, share: float, rng: random.Random, is_spaced: bool) -> str:
    """That share of the words is replaced, or of the characters of text without spaces."""
    units = re.split(r"(\s+)", text) if is_spaced else list(text)
    places = [place for place, unit in enumerate(units) if unit and not unit.isspace()]
    for place in rng.sample(places, round(share * len(places))):
        units[place] = f"w{rng.randrange(10**5)}" if is_spaced else chr(rng.randrange(0x4E00, 0x9000))
    return "".join(units)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_near_copies_of_real_articles_are_found_and_honest_ones_stay(
    tmp_path: Path, shared: Path, language: str
) -> None:
    path = shared / "data" / f"{language}_wiki.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        articles = [json.loads(line)["text"] for line in itertools.islice(lines, 2000)]
    rng = random.Random(0)
    copied = rng.sample([text for text in articles if len(text) > 200], 1000)
    parts = {
        "honest": articles,
        "copies": [changed(text, 0.05, rng, language == "en") for text in copied],
        "others": [changed(text, 0.10, rng, language == "en") for text in copied],  # honest, too
    }
    options = BuildOptions(paragraphs="off")
    found = []
    for part, texts in parts.items():
        setup = signed(tmp_path, part, texts, options)
        places = places_path(setup, part, DOCUMENTS)
        found.append(Signed(bands_path(setup, part, DOCUMENTS), places, np.ones(len(mapped(places)), bool)))
    stays = find_near(found, 0, DropLog(tmp_path / "drops"), 1, tmp_path / "edges")
    num_dropped = [int((~rows).sum()) for rows in stays]
    assert num_dropped[0] <= len(articles) / 1000
    assert num_dropped[1] >= 950
    assert num_dropped[2] <= 10
