"""The matrix as text: all cells, and the summary that README.md shows."""
import os
import re

MARK = "<!-- {} of the matrix: measured by `make matrix`, copied by `make matrix-write` -->"


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def detail_rows(cells):
    rows = [["ONNX Runtime", "EP", "embed", "route", "compile", "load", "compare", "result", "why"]]
    for cell in cells:
        rows.append([cell.runtime, cell.ep.title, str(cell.embed), cell.route, cell.compile, cell.load, cell.compare, cell.result,
                     cell.reason.replace("|", "/")])
    return rows


def details(cells):
    return aligned(detail_rows(cells))


def word(pair):
    """Of the two cells of a runtime and an EP. `pair`: by embed mode."""
    passed = [embed for embed, cell in sorted(pair.items()) if cell.result == "passed"]
    if len(passed) == 2:
        return pair[0].route
    if len(passed) == 1:
        return f"{pair[passed[0]].route if pair[passed[0]].route != 'none' else 'native'}, embed {passed[0]} only"
    return "refused" if all(cell.result == "refused" for cell in pair.values()) else "FAILED"


def summary_rows(cells, eps):
    pairs = {}
    for cell in cells:
        pairs.setdefault((cell.runtime, cell.ep.name), {})[cell.embed] = cell
    runtimes = list(dict.fromkeys(cell.runtime for cell in cells))
    rows = [["ONNX Runtime", *(ep.title for ep in eps)]]
    for runtime in runtimes:
        rows.append([runtime, *(word(pairs[runtime, ep.name]) if (runtime, ep.name) in pairs else "?" for ep in eps)])
    return rows


def summary(cells, eps):
    return aligned(summary_rows(cells, eps))


def between(text, part):
    """Start and end of what stands between the two marks of `part`."""
    mark = MARK.format(part)
    start = text.index(mark) + len(mark) + 1
    return start, text.index("<!-- end -->", start)


def read_table(path, part):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    start, end = between(text, part)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text[start:end].splitlines()]
    return [row for row in rows if not re.fullmatch("-*", row[0])] or [[""]]


def version_key(row):
    return [int(part) for part in row[0].split(".")]


def merged_summary(said, rows):
    """The rows of a document with what was measured put in."""
    kept = {row[0]: row for row in said[1:] if len(row) == len(rows[0])}
    for row in rows[1:]:
        old = kept.get(row[0], row)
        kept[row[0]] = [measured if measured != "?" else known for measured, known in zip(row, old)]
    return [rows[0], *sorted(kept.values(), key=version_key)]


def merged_cells(said, rows, titles):
    kept = {tuple(row[:3]): row for row in said[1:] if len(row) == len(rows[0])}
    kept.update({tuple(row[:3]): row for row in rows[1:]})
    return [rows[0], *sorted(kept.values(), key=lambda row: (version_key(row), titles.index(row[1]), row[2]))]


def write(source, cells, eps):
    """Puts what was measured into the documents; rows that were not stay."""
    titles = [ep.title for ep in eps]
    readme, support = os.path.join(source, "README.md"), os.path.join(source, "docs", "support.md")
    tables = ((readme, "summary", merged_summary(read_table(readme, "summary"), summary_rows(cells, eps))),
              (support, "cells", merged_cells(read_table(support, "cells"), detail_rows(cells), titles)))
    for path, part, rows in tables:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        start, end = between(text, part)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:start] + aligned(rows) + text[end:])


def differences(source, cells, eps):
    """Sentences: where README.md and docs/support.md do not say what was measured, of the rows that were."""
    said = read_table(os.path.join(source, "README.md"), "summary")
    if said[0][1:] != [ep.title for ep in eps]:
        yield f"the columns of README.md's table are {said[0]}"
        return
    for row in summary_rows(cells, eps)[1:]:
        known = next((other for other in said if other[0] == row[0]), [])
        for ep, measured, word_said in zip(eps, row[1:], known[1:] or ["nothing"] * len(eps)):
            if measured not in ("?", word_said):
                yield f"README.md says of {ep.title} on ONNX Runtime {row[0]}: {word_said}; measured: {measured}"
    listed = {tuple(row[:3]): row for row in read_table(os.path.join(source, "docs", "support.md"), "cells")}
    for cell in cells:
        row = listed.get((cell.runtime, cell.ep.title, str(cell.embed)))
        if row is None or row[3:8] != [cell.route, cell.compile, cell.load, cell.compare, cell.result]:
            yield f"docs/support.md says otherwise of {cell.ep.title} on ONNX Runtime {cell.runtime}, embed {cell.embed}"
