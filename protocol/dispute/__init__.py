"""The dispute game as pure functions: each side's next move and its proofs (dispute.md sections 4 to 6).

`challenger.next_move` and `defender.next_move` compute a `Move` from a `GameView` and our own `Run`; the
chain client sends it. The challenger also uses what the solver serves and has revealed. The module `looks`
assigns numbers to second looks. The module `accusing` chooses and opens the chunk for an accusation (audit.md
section 6). Nothing here uses a chain, a disk or a network directly.
"""
