"""A corpus report as one HTML page: a `CorpusReport` enters, text leaves that needs nothing from outside.

Plots are SVG in the page itself; colours follow the reader's light or dark setting.
"""

from collections.abc import Iterable, Sequence
from html import escape

from bertie.inspection.corpus_report import Bin, CorpusReport
from bertie.inspection.page import fact_cards, page, section, table

ROW, LABEL, WIDTH, NUMBERS = 22, 130, 640, 150  # of a plot, in its own units


def corpus_page(report: CorpusReport) -> str:
    parts = [
        _facts(report),
        section("Documents by length in tokens", _bars(_rows(report.document_lengths))),
        section("Sentences by length in tokens", _bars(_rows(report.sentence_lengths))),
        section("What a row of a given length would cut", _cuts(report)),
        section(
            "Scripts, by share of tokens",
            _bars([(name, share, f"{share:.2%}") for name, share in report.main_scripts()]),
        ),
        section("Left out by the build, duplicates among it", _counts(report.dropped)),
        section("Read and changed by the build", _counts(report.counts)),
        _leakage(report),
        section(
            "Samples",
            "".join(
                f"<blockquote>{escape(text)}<cite>{escape(name)}</cite></blockquote>" for name, text in report.samples
            ),
        ),
    ]
    return page(f"Corpus {report.name}", parts)


def _facts(report: CorpusReport) -> str:
    facts = {
        "documents": f"{report.num_documents:,}",
        "sentences": f"{report.num_sentences:,}",
        "words": f"{report.num_words:,}",
        "tokens": f"{report.num_tokens:,}",
        "unknown tokens": f"{report.unknown_rate:.3%}",
        "tokens a word": f"{report.num_tokens / max(1, report.num_words):.2f}",
    }
    return fact_cards(facts)


def _rows(bins: Sequence[Bin]) -> list[tuple[str, float, str]]:
    whole = max(1, sum(bin.count for bin in bins))
    return [
        (
            str(bin.low) if bin.low == bin.high else f"{bin.low:,}–{bin.high:,}",
            bin.count,
            f"{bin.count:,} ({bin.count / whole:.1%})",
        )
        for bin in bins
    ]


def _bars(rows: Iterable[tuple[str, float, str]]) -> str:
    """Label, size and words of each bar."""
    listed = list(rows)
    if not listed:
        return '<p class="note">nothing to show</p>'
    longest = max(size for _, size, _ in listed) or 1
    drawn = []
    for number, (label, size, words) in enumerate(listed):
        top = number * ROW
        width = max(1.0, size / longest * (WIDTH - LABEL - NUMBERS)) if size else 0
        drawn.append(
            f'<text class="faint" x="{LABEL - 8}" y="{top + 15}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{LABEL}" y="{top + 3}" width="{width:.1f}" height="{ROW - 6}" rx="2"></rect>'
            f'<text x="{LABEL + width + 8:.1f}" y="{top + 15}">{escape(words)}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {len(listed) * ROW}" role="img">{"".join(drawn)}</svg>'


def _cuts(report: CorpusReport) -> str:
    head = ("length", "documents longer", "their tokens cut", "sentences longer", "their tokens cut")
    rows = [
        (
            f"{cut.length:,}",
            f"{cut.documents:.1%}",
            f"{cut.document_tokens:.1%}",
            f"{cut.sentences:.2%}",
            f"{cut.sentence_tokens:.2%}",
        )
        for cut in report.cuts
    ]
    note = "If each document, or each sentence, were one row. Segments and packed rows lose nothing."
    return f'{table(head, rows)}<p class="note">{note}</p>'


def _counts(counts: dict[str, int]) -> str:
    if not counts:
        return '<p class="note">nothing</p>'
    return table(("what", "how many"), [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()])


def _leakage(report: CorpusReport) -> str:
    found = report.leakage
    if found is None:
        return ""
    told = (
        f"<p>{found.num_found_lines:,} of {found.num_lines - found.num_short:,} lines ({found.line_share:.2%}) and "
        f"{found.num_found_grams:,} of {found.num_grams:,} 13-grams ({found.gram_share:.2%}) occur in the corpus; "
        f"{found.num_short:,} lines are too short to tell.</p>"
    )
    return section(
        "Leakage", told + "".join(f"<blockquote>{escape(text)}</blockquote>" for text in report.leaked_texts)
    )
