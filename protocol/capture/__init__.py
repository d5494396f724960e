"""`capture`: turns a submitter's own torch code into a program that anyone can run without that code.

The code runs once, on fake tensors. Every operation it performs is lowered to library functions and
primitives; otherwise the capture fails with one error that lists everything that cannot be lowered. Each
stage imports only the stages listed above it:

    inputs       the arguments: model and dataset, examined
    tracing      one step of the code as a graph of ATen operations
    expansion    operations without a rule, rewritten as operations that have one
    analysis     the role of every contraction, which sets its bits; the ranges of integers
    lowering     the graph as instructions, by one rule per operation (`lowering.ops`)
    optimisers   the update of the parameters as instructions, learning rates as tables; phases of a step
    assembly     batch draw, micro-batches, lowered graph and update as one step program
    result       the step program with all the tensors that it runs on
    preflight    the step traced again, and compared with torch on a few batches

`pipeline` runs the stages in this order, with these main exceptions. The second trace of the preflight
follows the first trace directly. The updates and the tables of rates are made before the roles of
contractions are found. The instructions of the graph and of the update are written only when `assembly` calls
`lowering` and `optimisers`.

All stages share `errors`, `types` (the types of torch and of programs) and `streams` (of random numbers). If
a stage has a module `checks`, this module holds the stage's refusals, with the messages and remedies that the
submitter reads.
"""

from __future__ import annotations

from protocol.capture.errors import CaptureError, Problem
from protocol.capture.optimisers.phases import Phase
from protocol.capture.pipeline import capture, capture_phases
from protocol.capture.result import CapturedStep, Coverage, LoadError, load_into
from protocol.capture.tracing.step import Objective

__all__ = [
    "CaptureError",
    "CapturedStep",
    "Coverage",
    "LoadError",
    "Objective",
    "Phase",
    "Problem",
    "capture",
    "capture_phases",
    "load_into",
]
