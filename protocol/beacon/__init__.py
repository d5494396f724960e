"""The beacon: public threshold signatures over rounds: drand's scheme `bls-bn254-unchained-on-g1` (audit.md
section 1).

Pure: `bn254` (what is signed, signing and checking, and the hints that contracts/src/DrandBeacon.sol takes), `keys`,
`rounds` (a network and its clock). Edge: `networks`, the known ones; `server` and `relays`, drand's HTTP API.
"""
