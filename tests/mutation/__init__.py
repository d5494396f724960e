"""Mutation scores: how many small faults, planted one at a time, the tests notice (`make mutation`).

cosmic-ray proposes mutants of the Python reference, trees and game, slither-mutate's mutators those of the contracts.
Both list all mutants; `mutants` draws a sample by a fixed seed, `running` plants each in a scratch clone and runs the
tests of its file. What has been found is kept line by line, so that an interrupted run continues. `page` writes
docs/mutation.md; survivors that change nothing observable are argued in `argued.toml`.
"""
