"""The counts of a build enter, lines leave that tell all that was left out or changed, so that nothing is silent."""

from collections.abc import Iterator, Mapping

READ = ("documents read", "bytes read", "paragraphs")  # the size of the input: nothing was done to it
CLEANING = "cleaning: "
NEAR_NOT_KEPT = "bytes of near signatures not kept"


def count_lines(counts: Mapping[str, int], dropped: Mapping[str, int]) -> Iterator[str]:
    """`counts` and `dropped` of a manifest, or of one of its layers."""
    for reason, count in dropped.items():
        yield f"left out: {count:,} {reason}"
    for name, count in counts.items():
        if not count or name in READ:
            continue
        if name == NEAR_NOT_KEPT:
            yield f"not kept: {count:,} {name.removesuffix(' not kept')}, for which the disk allowed had no room"
            yield "bertie corpus add will not see near copies of these texts; it still sees exact ones"
        elif name.startswith(CLEANING):
            yield f"cleaning: {count:,} {name.removeprefix(CLEANING).replace('_', ' ')}"
        else:
            yield f"counted: {count:,} {name}"
