"""What an informer does, through the typed contracts: what becomes of the attestation, what the informer is
paid for the salt, and who pays for the next draw.
"""

from __future__ import annotations

import pytest

from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.parameters import DEVNET
from protocol.dispute.keys import attestation_word, informing_commitment, salt_hash
from tests.chain.conftest import Connect
from tests.chain.test_seats import Scene
from tests.chain.trees import terms

pytestmark = pytest.mark.chain

DIGEST, SALT = bytes([1]) * 32, bytes([2]) * 32


def test_a_salt_takes_half_of_the_lock_and_the_seat_is_drawn_again(chain: Devnet, connected: Connect) -> None:
    scene = Scene(chain, connected, verifiers=2)
    informer = scene.solver
    task = scene.submitted()
    scene.draw()
    (before,) = informer.audit.seats(task)
    (seated,) = (client for client in scene.verifiers if client.address == before.account)
    assert seated.audit.attestation(task, 0) is None
    seated.audit.attest(task, 0, DIGEST, salt_hash(SALT))
    assert informer.audit.attestation(task, 0) == attestation_word(DIGEST, salt_hash(SALT))

    commitment = informing_commitment(chain.chain_id, informer.looks.address, task, 0, informer.address, SALT)
    with pytest.raises(Reverted, match="NotCommitted"):
        informer.looks.inform(task, 0, DIGEST, SALT)
    assert informer.looks.committed_in(commitment) == 0
    made = informer.looks.commit_informing(commitment)
    assert informer.looks.committed_in(commitment) == made.block
    with pytest.raises(Reverted, match="WrongAttestation"):
        informer.looks.inform(task, 0, SALT, SALT)
    free = scene.free(informer)
    receipt = informer.looks.inform(task, 0, DIGEST, SALT)
    told = informer.looks.event(receipt, "Informed").arguments
    half = terms().seat_lock // 2
    assert (told["task"], told["seat"], told["paid"]) == (task, 0, half)
    assert (told["account"], told["informer"]) == (seated.address, informer.address)
    assert scene.free(informer) == free + half
    suspended = seated.audit.registration(seated.address)
    assert suspended is not None
    assert suspended.suspended
    assert seated.audit.attestation(task, 0) is None
    assert seated.audit.seat(task, 0).is_empty
    audit = seated.audit.audit(task)
    assert (audit.attested, audit.escrow_draws) == (0, 1)
    assert audit.informed_at == chain.connection.block(receipt.block).time
    assert seated.vault.lock_of(audit.purse).remaining == DEVNET.draw_fee

    scene.past(audit.until)
    informer.audit.redraw(task)
    again = informer.audit.first_draw()
    assert again is not None
    assert again.purse == audit.purse
    assert informer.audit.audit(task).purse == 0
    scene.draw()
    assert informer.audit.seat(task, 0).account != seated.address
