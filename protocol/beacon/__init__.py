"""The beacon: public threshold signatures over rounds, by drand's scheme `bls-bn254-unchained-on-g1`
(audit.md section 1).

Pure modules: `bn254` (messages, signing, and the hints that contracts/src/DrandBeacon.sol takes), `keys`, and
`rounds` (a network and its clock). Edge modules: `networks` (the known networks), and `server` and `relays`
(drand's HTTP API).
"""
