"""Prints cosmic-ray's mutants of the Python files named, as JSON. Runs in the environment of the tools.

Left out: operators that need arguments, and mutants of annotations, which nothing evaluates at run time.
"""

import ast
import json
import sys
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

NEED_ARGUMENTS = ("core/VariableReplacer", "core/VariableInserter")


def annotations(text):
    """Spans of bytes that annotations take."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(text)):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                yield (
                    lines[found.lineno - 1] + found.col_offset,
                    lines[found.end_lineno - 1] + found.end_col_offset,
                )


def shared(one, other):
    """How many bytes at the beginning are the same."""
    return next(
        (place for place, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other))
    )


def mutants(file):
    """Each as a span of bytes and its new text."""
    text = Path(file).read_text()
    source, spans, tree = text.encode(), list(annotations(text)), get_ast(text)
    for name in sorted(operator_names()):
        if name in NEED_ARGUMENTS:
            continue
        operator = get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in ast_nodes(tree))
        for occurrence in range(count):
            planted = mutate_code(text, operator, occurrence).encode()
            start = shared(source, planted)
            rest = shared(source[start:][::-1], planted[start:][::-1])
            end = len(source) - rest
            if not any(first <= start < last for first, last in spans):
                new = planted[start : len(planted) - rest].decode()
                yield {"file": file, "operator": name[5:], "start": start, "end": end, "text": new}


print(json.dumps([mutant for file in sys.argv[1:] for mutant in mutants(file)]))
