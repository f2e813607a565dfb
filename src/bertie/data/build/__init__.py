"""Text in, a corpus folder out, in stages that map over parts of the input: signing, merging, tokenising."""

from bertie.data.build.options import BuildOptions
from bertie.data.build.run import BuildReport, Step, add_to_corpus, build_corpus

__all__ = ["BuildOptions", "BuildReport", "Step", "add_to_corpus", "build_corpus"]
