"""A corpus report as one HTML page: a `CorpusReport` enters, text leaves that needs nothing from outside.

Plots are SVG in the page itself; colours follow the reader's light or dark setting.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from bertie.inspection.corpus_report import Bin, CorpusReport

ROW, LABEL, WIDTH, NUMBERS = 22, 130, 640, 150  # of a plot, in its own units


def corpus_page(report: CorpusReport) -> str:
    template = Template(files("bertie.inspection").joinpath("corpus_page.html").read_text(encoding="utf-8"))
    parts = [
        _facts(report),
        _section("Documents by length in tokens", _bars(_rows(report.document_lengths))),
        _section("Sentences by length in tokens", _bars(_rows(report.sentence_lengths))),
        _section("What a row of a given length would cut", _cuts(report)),
        _section(
            "Scripts, by share of tokens",
            _bars([(name, share, f"{share:.2%}") for name, share in report.main_scripts()]),
        ),
        _section("Left out by the build, duplicates among it", _counts(report.dropped)),
        _section("Read and changed by the build", _counts(report.counts)),
        _leakage(report),
        _section(
            "Samples",
            "".join(
                f"<blockquote>{escape(text)}<cite>{escape(name)}</cite></blockquote>" for name, text in report.samples
            ),
        ),
    ]
    return template.substitute(name=escape(report.name), body="\n".join(parts))


def _facts(report: CorpusReport) -> str:
    facts = {
        "documents": f"{report.num_documents:,}",
        "sentences": f"{report.num_sentences:,}",
        "words": f"{report.num_words:,}",
        "tokens": f"{report.num_tokens:,}",
        "unknown tokens": f"{report.unknown_rate:.3%}",
        "tokens a word": f"{report.num_tokens / max(1, report.num_words):.2f}",
    }
    return '<dl class="facts">' + "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items()) + "</dl>"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


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


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


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
    return f'{_table(head, rows)}<p class="note">{note}</p>'


def _counts(counts: dict[str, int]) -> str:
    if not counts:
        return '<p class="note">nothing</p>'
    return _table(("what", "how many"), [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()])


def _leakage(report: CorpusReport) -> str:
    found = report.leakage
    if found is None:
        return ""
    told = (
        f"<p>{found.num_found_lines:,} of {found.num_lines - found.num_short:,} lines ({found.line_share:.2%}) and "
        f"{found.num_found_grams:,} of {found.num_grams:,} 13-grams ({found.gram_share:.2%}) occur in the corpus; "
        f"{found.num_short:,} lines are too short to tell.</p>"
    )
    return _section(
        "Leakage", told + "".join(f"<blockquote>{escape(text)}</blockquote>" for text in report.leaked_texts)
    )
