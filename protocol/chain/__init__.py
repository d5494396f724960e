"""The typed client of the contracts: a development chain, deployment, accounts, reading, sending, following events.

Edge code: everything that talks to a chain is here, and nothing that decides a move (that is `protocol.dispute`).
Import the modules themselves, because web3 takes most of a second to load. `client.connect` is the entry point;
`devnet`, `deploy`, `accounts`, `events` and `game_view` are further ones; `errors` holds what they raise.
"""

from protocol.chain.late_keyfiles import put_off

put_off()
