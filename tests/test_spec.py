"""Specs: frozen, validated again when replaced, round-trip through JSON, mistakes told as one sentence."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from bertie.errors import SpecError, UserError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.spec import Spec


class Circle(Spec):
    kind: Literal["circle"] = "circle"
    radius: float = Field(gt=0)


class Square(Spec):
    kind: Literal["square"] = "square"
    side: float = Field(default=1.0, gt=0)


class Drawing(Spec):
    shapes: tuple[Annotated[Circle | Square, Field(discriminator="kind")], ...] = ()
    title: str = ""


def test_replace_gives_a_validated_copy_and_leaves_the_original() -> None:
    small = Circle(radius=1)
    large = small.replace(radius=2)
    assert (small.radius, large.radius) == (1, 2)
    with pytest.raises(SpecError, match="radius: input should be greater than 0"):
        small.replace(radius=-1)


def test_replace_refuses_a_field_that_does_not_exist() -> None:
    with pytest.raises(SpecError, match="diameter: extra inputs are not permitted"):
        Circle(radius=1).replace(diameter=2)


def test_replace_accepts_nested_specs_and_plain_data() -> None:
    drawing = Drawing(shapes=(Circle(radius=1),), title="a")
    assert drawing.replace(shapes=(Square(),)).shapes == (Square(),)
    assert drawing.replace(shapes=[{"kind": "square", "side": 2}]).shapes == (Square(side=2),)
    assert drawing.replace(title="b").shapes == drawing.shapes


def test_replace_keeps_the_type_of_a_subclass() -> None:
    class Ring(Circle):
        inner: float = 0.5

    assert Ring(radius=1).replace(radius=3) == Ring(radius=3)


def test_specs_are_frozen_and_hashable() -> None:
    circle = Circle(radius=1)
    with pytest.raises(ValidationError):
        circle.radius = 2
    assert {circle: "x"}[Circle(radius=1)] == "x"


def test_json_round_trip_keeps_kinds() -> None:
    drawing = Drawing(shapes=(Circle(radius=0.1), Square(side=1e-12)), title="Größe 中")
    assert Drawing.from_json(drawing.to_json()) == drawing


def test_a_wrong_kind_names_the_place_and_the_choices() -> None:
    with pytest.raises(SpecError) as caught:
        Drawing.parse({"shapes": [{"kind": "circle", "radius": 1}, {"kind": "cube"}]}, where="a.json")
    told = str(caught.value)
    assert told.startswith("a.json: shapes.1: ")
    assert "'cube'" in told
    assert "'circle', 'square'" in told


def test_a_missing_kind_is_told() -> None:
    with pytest.raises(SpecError, match=r"shapes\.0: unable to extract tag"):
        Drawing.parse({"shapes": [{"radius": 1}]})


def test_several_mistakes_are_counted() -> None:
    with pytest.raises(SpecError, match=r"\(and 1 more\)") as caught:
        Drawing.parse({"title": 3, "colour": "red"})
    assert caught.value.where == "Drawing"
    assert isinstance(caught.value, UserError)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"radius": NaN}', '{"radius": "wide"}', "\x00"])
def test_broken_json_is_one_sentence(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        Circle.from_json(text, where="circle.json")
    assert str(caught.value).startswith("circle.json: ")
    assert "\n" not in str(caught.value)


def test_a_rule_across_fields_is_told() -> None:
    tables = (TableSpec(field="tokens", size=3), TableSpec(field="tokens", size=4))
    with pytest.raises(SpecError, match="two tables read the same field: tokens, tokens"):
        EmbeddingsSpec.parse({"tables": tables})


def test_replace_works_where_a_field_is_written_under_another_name() -> None:
    class Named(Spec):
        low: int = Field(default=0, alias="from")
        high: int = 1

    named = Named.parse({"from": 3})
    assert Named.from_json(named.to_json()) == named
    assert named.replace(high=5).low == 3


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(SpecError, match="width 10 cannot be split into 3 heads"):
        AttentionSpec(num_heads=3).build(10)


@pytest.mark.parametrize("fields", [{}, {"tables": []}, {"tables": [{"field": "tokens"}]}])
def test_incomplete_embeddings_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="tables"):
        EmbeddingsSpec.parse(fields)


class Frame(Spec):
    circle: Circle = Circle(radius=1)
    square: Square = Square()
    colour: str = "black"


class Wall(Spec):
    left: Frame = Frame()
    right: Frame | None = None


def test_fields_at_any_depth_are_changed_and_the_rest_stays() -> None:
    wall = Wall(right=Frame(colour="red"))
    changed = wall.changed({"left.circle.radius": 3, "right.colour": "blue"})
    assert changed == Wall(left=Frame(circle=Circle(radius=3)), right=Frame(colour="blue"))
    assert wall == Wall(right=Frame(colour="red"))


def test_two_fields_below_one_parent_are_both_changed() -> None:
    changes = {"left.circle.radius": 3, "left.square.side": 4, "left.colour": "red", "right": None}
    expected = Frame(circle=Circle(radius=3), square=Square(side=4), colour="red")
    assert Wall(right=Frame()).changed(changes) == Wall(left=expected)


def test_no_changes_give_an_equal_value() -> None:
    assert Wall().changed({}) == Wall()


def test_a_whole_part_may_be_put_in_place() -> None:
    assert Wall().changed({"left.circle": Circle(radius=9)}).left.circle.radius == 9


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("colour", "Wall: colour: extra inputs are not permitted"),
        ("left.radius", "Frame: radius: extra inputs are not permitted"),
        ("left.oval.radius", "Frame: oval: has no fields to change"),
        ("centre.colour", "Wall: centre: has no fields to change"),
        ("right.colour", "Wall: right: has no fields to change"),
        ("left.colour.red", "Frame: colour: has no fields to change"),
        ("left.circle.radius", "Circle: radius: input should be greater than 0"),
    ],
)
def test_a_change_that_cannot_be_is_an_error_that_names_the_field(name: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        Wall().changed({name: -1})
