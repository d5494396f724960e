"""Prints, as JSON, cosmic-ray's mutants of the Python files given as arguments. Runs in the environment of
the tools.

Operators that need arguments are left out, and so are mutants of annotations, which nothing evaluates at run
time.
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
    """The start and the end of each annotation in the text. Each of the two positions is a pair of line and
    column.
    """
    for node in ast.walk(ast.parse(text)):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def mutants(file):
    """The mutants of a file, each as a replacement of its whole text."""
    text = Path(file).read_text()
    spans, tree = list(annotations(text)), get_ast(text)
    for name in sorted(operator_names()):
        if name in NEED_ARGUMENTS:
            continue
        operator = get_operator(name)()
        places = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if any(first <= start < last for first, last in spans):
                continue
            planted = mutate_code(text, operator, occurrence)
            yield {"file": file, "operator": name[5:], "start": 0, "end": len(text.encode()), "text": planted}


print(json.dumps([mutant for file in sys.argv[1:] for mutant in mutants(file)]))
