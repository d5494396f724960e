"""The beacon: public threshold signatures over rounds: drand's scheme `bls-bn254-unchained-on-g1` (audit.md
section 1).

Pure: `bn254`, what is signed, signed with and checked, and the hints that contracts/src/DrandBeacon.sol takes; `keys`;
`rounds`, a network and its clock. At the edge: `networks`, those that are known; `server` and `relays`, drand's HTTP
API.
"""
