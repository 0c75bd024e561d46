"""Draw the floors that architecture.rst lists: python doc/house.py writes _static/house.svg."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PICTURE = HERE / "_static" / "house.svg"

WIDTH, WALL, ROOF, STOREY = 1280, 44, 118, 60  # pixels
LETTER, PAD, GAP = 7.7, 9, 8
COLOURS = ("#f3eee3", "#efe9dc")  # of the floors, in turn


def floors():
    """Titles and modules of the floors, from the top."""
    page = (HERE / "architecture.rst").read_text(encoding="utf-8")
    table = page.split(".. floors-begin")[1].split(".. floors-end")[0]
    rows = re.split(r"^   \* - ", table, flags=re.MULTILINE)[2:]
    cells = [re.split(r"^     - ", row, flags=re.MULTILINE) for row in rows]
    return [(title.strip(), re.findall(r"``(\w+)``", modules)) for title, modules, _ in cells]


def text(x, y, words, style):
    return f'<text x="{x:g}" y="{y:g}" class="{style}">{words}</text>'


def storey(y, title, modules, colour):
    """One floor: its title on the left, a box for each module."""
    inside = WIDTH - 2 * WALL
    yield f'<rect x="{WALL}" y="{y}" width="{inside}" height="{STOREY}" fill="{colour}"/>'
    yield text(WALL + 16, y + STOREY / 2 + 5, title, "floor")
    x = WALL + 190
    for module in modules:
        width = LETTER * len(module) + 2 * PAD
        style = "private" if module.startswith("_") else "public"
        yield (
            f'<rect x="{x:g}" y="{y + 15}" width="{width:g}" height="{STOREY - 30}" rx="4" '
            f'class="{style}"/>'
        )
        yield text(x + width / 2, y + STOREY / 2 + 4.5, module, f"name {style}")
        x += width + GAP
    if x > WIDTH - WALL + GAP:
        raise ValueError(f"The floor {title!r} is wider than the house.")


def drawing():
    """The picture as SVG."""
    rows = floors()
    height = ROOF + STOREY * len(rows)
    middle = WIDTH / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 22}" '
        f'width="{WIDTH}" height="{height + 22}" font-family="sans-serif">',
        "<title>The modules of skdp on their floors</title>",
        "<style>",
        ".floor { font-size: 13px; fill: #5b5344; }",
        ".name { font-family: monospace; font-size: 12.5px; text-anchor: middle; }",
        "rect.public { fill: #2f6690; } text.public { fill: #ffffff; }",
        "rect.private { fill: #ffffff; stroke: #8ba6bb; } text.private { fill: #2f4858; }",
        ".roof { font-family: monospace; font-size: 12.5px; fill: #ffffff; text-anchor: middle; }",
        ".large { font-size: 20px; font-weight: bold; }",
        "</style>",
        f'<rect width="{WIDTH}" height="{height + 22}" fill="#ffffff"/>',
        f'<path d="M 6 {ROOF} L {middle:g} 8 L {WIDTH - 6} {ROOF} Z" fill="#9c4a34"/>',
        text(middle, ROOF - 44, "skdp", "roof large"),
        text(middle, ROOF - 18, "from skdp import DPLogisticRegression", "roof"),
    ]
    for number, (title, modules) in enumerate(rows):
        lines.extend(storey(ROOF + STOREY * number, title, modules, COLOURS[number % 2]))
    lines.append(f'<path d="M 6 {height + 4} H {WIDTH - 6}" stroke="#6b705c" stroke-width="8"/>')
    # Imports go down, beside the house.
    x, bottom = WIDTH - 20, height - 8
    lines += [
        f'<path d="M {x} {ROOF + 16} V {bottom} M {x - 6} {bottom - 10} L {x} {bottom} '
        f'L {x + 6} {bottom - 10}" stroke="#9c4a34" stroke-width="2" fill="none"/>',
        f'<text transform="translate({x - 8} {ROOF + 80}) rotate(-90)" class="floor">',
        "imports</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
