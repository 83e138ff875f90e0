"""What holds of every picture that becomes a file."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from bertkit.reports.figures.picture import render_svg, write_picture
from bertkit.reports.figures.svg import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</style></svg><script>alert(1)</script>\x00\x1b\ud800\ufffe\u202e&\"'"
LONG = "z" * 100_000


def check_file(picture: Any, path: Path) -> None:
    """A file is whole, well-formed, and has all that a page gives it."""
    record = write_picture(path, picture)
    assert record.size_bytes == path.stat().st_size
    svg = ET.parse(path).getroot()
    assert svg.tag == f"{SVG}svg"
    assert svg.get("viewBox") == f"0 0 {svg.get('width')} {svg.get('height')}"
    assert [part.tag for part in svg][:3] == [f"{SVG}title", f"{SVG}desc", f"{SVG}style"]
    style = svg.find(f"{SVG}style").text
    assert "var(" not in style
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for name in ("page", "text", "right", "c0"):
        assert (LIGHT[name] in light, DARK[name] in dark) == (True, True)
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert texts[0] == f"{picture.title} ({picture.unit})"
    assert texts[1 : 1 + len(picture.legend())] == [name for _, name in picture.legend()]
    inside = list(ET.fromstring(picture.draw()).iter("text"))
    assert len(texts) == len(inside) + 1 + len(picture.legend())


def check_harmless(picture: Any) -> None:
    """Names of `HOSTILE` are text in a well-formed file."""
    svg = ET.fromstring(render_svg(picture).encode())
    assert not list(svg.iter(f"{SVG}script"))
    assert len(list(svg.iter(f"{SVG}style"))) == 1
    assert "<script" not in render_svg(picture) + picture.draw()
    title = svg.find(f"{SVG}title").text
    assert title.startswith("</style></svg><script>alert(1)</script>␀␛\ufffd")


def check_small(picture: Any) -> None:
    """Names of `LONG` leave a file small."""
    drawing = render_svg(picture)
    assert len(drawing) < 20_000
    assert float(ET.fromstring(drawing).get("width")) < 1000
