"""Prints slither-mutate's mutants of the contracts in the given files, as JSON. Runs in the environment of
the tools, in a checkout that `running.for_slither` has built.

The command slither-mutate cannot restrict itself to a sample of mutants, and it runs the same tests for all
files. So its mutators are called here. The mutator FHR is left out: it changes visibility and mutability.
Such a change either does not compile, or compiles to the same program.
"""

import json
import sys
from pathlib import Path

from slither import Slither
from slither.exceptions import SlitherException
from slither.tools.mutator.mutators import LIR, all_mutators
from slither.tools.mutator.mutators.abstract_mutator import AbstractMutator

OUT = "build/mutation/proposed"


def mutators():
    """All mutators of slither-mutate except FHR."""
    found = [one for one in vars(all_mutators).values() if isinstance(one, type)]
    return [one for one in found if issubclass(one, AbstractMutator) and one.NAME not in ("", "FHR")]


def patches(mutator, unit, contract):
    """The mutator's proposals for a contract. The mutator is called once for each node of a function, because
    it fails on some expressions: a failure then costs only one node's proposals.
    """
    for function in contract.functions_and_modifiers_declared:
        for node in function.nodes:
            made = mutator(unit, 0, "", "", contract, None, False, Path(), [])
            made.should_mutate_function = lambda one, function=function: one is function
            made.should_mutate_node = lambda one, node=node: one is node
            LIR.literal_replacements.clear()  # it keeps those of earlier calls
            try:
                found = made._mutate()
            except (IndexError, SlitherException):
                print(f"{mutator.NAME} fails on {node.source_mapping}", file=sys.stderr)
                continue
            yield from (patch for group in found.get("patches", {}).values() for patch in group)


def mutants(slither, files):
    """The mutants of these files, each as a span of bytes and its new text. A contract that several units
    contain is included once.
    """
    seen = set()
    for unit in slither.compilation_units:
        for contract in unit.contracts:
            file = contract.source_mapping.filename.relative
            if file not in files or (file, contract.name) in seen or contract.is_interface:
                continue
            seen.add((file, contract.name))
            source = Path(file).read_bytes()
            for mutator in mutators():
                for patch in patches(mutator, unit, contract):
                    start, end, text = patch["start"], patch["end"], patch["new_string"]
                    if source[start:end] != text.encode():
                        yield {
                            "file": file,
                            "operator": mutator.NAME,
                            "start": start,
                            "end": end,
                            "text": text,
                        }


compiled = Slither(
    ".",
    foundry_ignore_compile=True,
    foundry_out_directory=OUT,
    foundry_build_info_directory=f"{OUT}/build-info",
)
print(json.dumps(list(mutants(compiled, set(sys.argv[1:])))))
