import ast

import pytest

from bertie.quickstart.entry import Entry
from bertie.quickstart.reexports import reexports_of, shown

PACKAGE = """
from ._kmeans import KMeans, k_means as cluster, _hidden
from .tree import Tree
from ._all import *
from other._part import Thing
from pack._absolute import There
from .._above import Above
from . import _module
"""


def test_names_that_a_package_has_from_its_private_modules() -> None:
    assert reexports_of(ast.parse(PACKAGE), "pack.part") == {
        "pack.part._kmeans.KMeans": "pack.part.KMeans",
        "pack.part._kmeans.k_means": "pack.part.cluster",
        "pack.part._all.*": "pack.part",
        "pack._absolute.There": "pack.part.There",
        "pack._above.Above": "pack.part.Above",
    }
    assert reexports_of(ast.parse(PACKAGE), "pack._part") == {}, "what is private itself shows nothing"


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("pack._a.Shape", "pack._a", "pack.Shape"),
        ("pack._a.Shape.area", "pack._a", "pack.Shape.area"),
        ("pack._a.Shape._area", "pack._a", "pack._a.Shape._area"),
        ("pack._a.other", "pack._a", "pack._a.other"),
        ("pack._b.any", "pack._b", "pack.part.any"),
        ("pack._a", "pack._a", "pack._a"),
        ("pack.open.Shape", "pack.open", "pack.open.Shape"),
    ],
)
def test_an_entry_has_its_public_name(name: str, source: str, expected: str) -> None:
    reexports = {"pack._a.Shape": "pack.Shape", "pack._b.*": "pack.part", "pack.open.Shape": "nowhere"}
    entry = Entry(name, "pack", source, "function", "Told.", "")
    assert shown(entry, reexports).name == expected
    assert shown(entry, reexports).source == source
