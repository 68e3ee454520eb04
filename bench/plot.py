"""One picture of the ratios to the plaintext load, as SVG: memory on the left, time on the right, a row per case and a mark per way."""

import math

import rules

COLOURS = {"seed": "#9a9a9a", "ortcrypt": "#1f6fb4", "split": "#2a9d4a", "lazy": "#d95f02", "split lazy": "#b8860b"}
MEMORY_TICKS = (0.5, 0.75, 1, 1.5, 2, 3)  # ratios; beyond the first and last a mark stands at the edge
TIME_TICKS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
ROW, TOP, LEFT, PANEL, GAP = 18, 64, 250, 330, 40


def text(x, y, words, size=11, anchor="start", colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def place(ratio, left, ticks):
    low, high = math.log(ticks[0]), math.log(ticks[-1])
    return left + (min(max(math.log(max(ratio, 1e-9)), low), high) - low) / (high - low) * PANEL


def panel(left, title, bottom, ticks):
    yield text(left + PANEL / 2, TOP - 30, title, 12, "middle")
    for tick in ticks:
        x = place(tick, left, ticks)
        yield f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{"#444" if tick == 1 else "#ddd"}"/>'
        yield text(x, TOP - 13, f"{tick:g}", 10, "middle", "#555")


def legend():
    for index, (way, colour) in enumerate(COLOURS.items()):
        x = LEFT + index * 130
        yield f'<circle cx="{x}" cy="16" r="5" fill="{colour}"/>'
        yield text(x + 10, 20, {"seed": "documented flow"}.get(way, way))


def row(loads, case, y):
    yield text(8, y + 4, rules.say(case), 11)
    for left, ticks, fields in ((LEFT, MEMORY_TICKS, ("peak",)), (LEFT + PANEL + GAP, TIME_TICKS, ("create_s", "first_s"))):
        for way, colour in COLOURS.items():
            ratio = loads.ratio(case, way, "plain", *fields)
            if ratio is not None:
                yield (f'<circle cx="{place(ratio, left, ticks):.1f}" cy="{y}" r="5" fill="{colour}" fill-opacity="0.85">'
                       f"<title>{way}: {ratio:.2f}</title></circle>")


def svg(results):
    loads = rules.Loads(results["loads"])
    cases = loads.cases()
    bottom = TOP + ROW * len(cases)
    width = LEFT + 2 * PANEL + GAP + 20
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 16}" font-family="sans-serif">',
             f'<rect width="{width}" height="{bottom + 16}" fill="white"/>', *legend(),
             *panel(LEFT, "peak memory, times the plaintext load", bottom, MEMORY_TICKS),
             *panel(LEFT + PANEL + GAP, "create + first inference, times the plaintext load", bottom, TIME_TICKS)]
    for index, case in enumerate(cases):
        lines += row(loads, case, TOP + ROW * index + ROW // 2)
    return "\n".join([*lines, "</svg>", ""])
