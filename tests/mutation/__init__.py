"""Mutation scores: how many small faults, planted one at a time, the tests notice (`make mutation`).

cosmic-ray proposes the mutants of the Python code: the reference, the trees and the game. slither-mutate's
mutators propose those of the contracts. Both propose all mutants that they know, and `mutants` puts these in
an order that a fixed seed determines. `running` takes mutants in this order until the sample is full: it
plants each in a scratch clone and runs the tests of the mutated file. Each outcome is kept at once, so that
an interrupted run continues. `page` writes docs/mutation.md. `argued.toml` has, for mutants that survive, the
reason why they change nothing observable.
"""
