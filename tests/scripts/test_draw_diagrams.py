"""The diagrams of the model: the stored ones are up to date, and show what follows from what in the equations."""

import re
import sys
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from draw_diagrams import DIAGRAMS, PICTURES, WIDTH, Box, Diagram, main, render

Point = tuple[float, float]
EDGES = {
    "order_bahdanau.svg": """
        s_i−1 -> 1 attend; h_j -> 1 attend; 1 attend -> c_i
        c_i -> 2 update; s_i−1 -> 2 update; y_i−1 -> 2 update; 2 update -> s_i
        s_i -> 3 read out; c_i -> 3 read out; y_i−1 -> 3 read out; 3 read out -> y_i""",
    "order_luong.svg": """
        h_t−1 -> 1 update; y_t−1 -> 1 update; h̃_t -> 1 update; 1 update -> h_t
        h_t -> 2 attend; h_j -> 2 attend; 2 attend -> c_t
        c_t -> 3 combine; h_t -> 3 combine; 3 combine -> h̃_t; h̃_t -> 4 read out; 4 read out -> y_t""",
    "transformer_layer.svg": """
        x -> norm; norm -> self-attention; self-attention -> +; x -> +
        + -> norm'; norm' -> attention; h_j -> attention; attention -> +'; + -> +'
        +' -> norm''; norm'' -> feed-forward; feed-forward -> +''; +' -> +''; +'' -> x'""",
}
"""What each equation reads and gives; a name that has been there before has a prime."""


def names_of(boxes: list[Box]) -> dict[Box, str]:
    """The symbols of boxes; from the top, those with the same one have more and more primes."""
    names: dict[Box, str] = {}
    for box in sorted(boxes, key=lambda box: box.y):
        name = box.symbol
        while name in names.values():
            name += "'"
        names[box] = name
    return names


def points_of(path: str) -> list[Point]:
    """The corners of a path of M, H and V."""
    x = y = 0.0
    points = []
    for letter, numbers in re.findall(r"([MHV])([-\d. ]+)", path):
        values = list(map(float, numbers.split()))
        x = values[0] if letter in "MH" else x
        y = values[-1] if letter in "MV" else y
        points.append((x, y))
    return points


def touches(box: Box, point: Point) -> bool:
    """Whether a point is on the edge of a box, or on the line right below it."""
    (width, height), (x, y) = box.size, point
    across, down = abs(x - box.x), abs(y - box.y)
    return (across == width / 2 and down <= height / 2) or (x == box.x and (y == box.top or 0 <= y - box.bottom <= 8))


def enters(box: Box, start: Point, end: Point) -> bool:
    """Whether a segment goes through the inside of a box."""
    (left, right), (top, bottom) = (sorted(pair) for pair in zip(start, end, strict=True))
    return left < box.side(WIDTH) and right > box.side(0) and top < box.bottom and bottom > box.top


@pytest.fixture(params=DIAGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def diagram(name: str) -> Diagram:
    return DIAGRAMS[name]()


def test_stored_diagrams_are_what_the_script_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["draw_diagrams.py", "--output", str(tmp_path)])
    main()
    stored = {path.name: path.read_bytes() for path in PICTURES.glob("*.svg")}
    assert stored == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_arrows_are_those_of_the_equations(name: str, diagram: Diagram) -> None:
    names = names_of([box for box in diagram.boxes if box.kind != "note"])
    edges = []
    for path in [*diagram.arrows, *diagram.dashed]:
        points = points_of(path)
        (start,), (end,) = ([names[box] for box in names if touches(box, point)] for point in (points[0], points[-1]))
        edges.append(f"{start} -> {end}")
    assert sorted(edges) == sorted(edge.strip() for edge in re.split(r"[;\n]", EDGES[name]) if edge.strip())


def test_nothing_lies_on_something_else(diagram: Diagram) -> None:
    corners = {box: ((box.side(0), box.top), (box.side(WIDTH), box.bottom)) for box in diagram.boxes}
    for box, other in combinations(diagram.boxes, 2):
        assert not enters(box, *corners[other]), (box, other)
    for path in [*diagram.arrows, *diagram.dashed]:
        for segment in pairwise(points_of(path)):
            assert not any(enters(box, *segment) for box in diagram.boxes), path
            assert all(0 < x < WIDTH and y > 0 for x, y in segment)


def test_a_diagram_has_its_title_and_boxes(diagram: Diagram) -> None:
    root = ET.fromstring(render(diagram))
    space = "{http://www.w3.org/2000/svg}"
    assert (root.findtext(f"{space}title"), root.get("role")) == (diagram.title, "img")
    assert len(root.findall(f"{space}rect")) == len(diagram.boxes) + 1


def test_a_missing_folder_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["draw_diagrams.py", "--output", "nowhere"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err == "error: nowhere: no such folder; give that of the pictures with --output\n"
