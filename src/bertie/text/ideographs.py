"""Which characters are ideographs: nothing enters; their ranges leave, and the inside of a pattern's class."""

# What WordPiece isolates, without the ranges in which its implementations differ (U+2B820 to U+2B91F).
IDEOGRAPH_RANGES = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
IDEOGRAPHS = "".join(f"{chr(first)}-{chr(last)}" for first, last in IDEOGRAPH_RANGES)
