"""Mutation scores: how many small faults, planted one at a time, the tests notice (`make mutation`).

cosmic-ray proposes the mutants of the Python reference, trees and game; slither-mutate's mutators propose
those of the contracts. Both list all mutants, and `mutants` puts them in an order by a fixed seed. `running`
plants the first of them in a scratch clone, one at a time, and runs the tests of the mutated file. Each
outcome is kept at once, so that an interrupted run continues. `page` writes docs/mutation.md; `argued.toml`
says why survivors change nothing observable.
"""
