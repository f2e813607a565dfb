"""Turns a `CorpusReport` into an HTML page."""

from collections.abc import Sequence

from markupsafe import Markup

from bertie.data.reports.corpus_report import Bin, CorpusReport
from bertie.reporting.page import bars, fact_cards, note, page, paragraph, quote, section, table


def corpus_page(report: CorpusReport) -> str:
    parts = [
        _facts(report),
        section("Documents by length in tokens", bars(_rows(report.document_lengths))),
        section("Sentences by length in tokens", bars(_rows(report.sentence_lengths))),
        section("What a row of a given length would cut", _cuts(report)),
        section(
            "Scripts, by share of tokens",
            bars([(name, share, f"{share:.2%}") for name, share in report.main_scripts()]),
        ),
        section("Left out by the build, duplicates among it", _counts(report.dropped)),
        section("Read and changed by the build", _counts(report.counts)),
        _leakage(report),
        section("Samples", Markup("").join(quote(text, name) for name, text in report.samples)),
    ]
    return page(f"Corpus {report.name}", parts)


def _facts(report: CorpusReport) -> Markup:
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


def _cuts(report: CorpusReport) -> Markup:
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
    return table(head, rows) + note(
        "If each document, or each sentence, were one row. Segments and packed rows lose nothing."
    )


def _counts(counts: dict[str, int]) -> Markup:
    if not counts:
        return note("nothing")
    return table(("what", "how many"), [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()])


def _leakage(report: CorpusReport) -> Markup:
    found = report.leakage
    if found is None:
        return Markup("")
    summary = (
        f"{found.num_found_lines:,} of {found.num_lines - found.num_short:,} lines ({found.line_share:.2%}) and "
        f"{found.num_found_grams:,} of {found.num_grams:,} 13-grams ({found.gram_share:.2%}) occur in the corpus; "
        f"{found.num_short:,} lines are too short to compare."
    )
    return section("Leakage", paragraph(summary) + Markup("").join(map(quote, report.leaked_texts)))
