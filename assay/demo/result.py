"""The metrics of a trained state, fetched from its solver and checked against the result root on the chain."""

from __future__ import annotations

from assay.demo.errors import StageError
from protocol.bundles import Bundle
from protocol.chain.client import Client
from protocol.commitments import state_root, tensor_root
from protocol.numerics.types import from_bytes

PREFIX = "metric."
"""Scalars of the state that the capture made of the objective's loss and metrics."""


def metrics(client: Client, bundle: Bundle, task: int) -> dict[str, float]:
    """Loss and metrics after the last step, by name. Raises StageError if the solver serves another state."""
    import httpx

    view = client.market.task(task)
    url = str(client.market.read("endpointOf", view.solver))
    last = client.market.terms(task).segments
    found: dict[str, float] = {}
    roots = []
    with httpx.Client(base_url=url, timeout=20, trust_env=False) as http:
        for k, (name, type_) in enumerate(zip(bundle.step.state, bundle.step.state_types, strict=True)):
            data = http.get(f"/tasks/{task}/checkpoints/{last}/tensors/{k}").raise_for_status().content
            roots.append(tensor_root(data))
            if name.startswith(PREFIX) and len(data) == type_.nbytes:
                found[name.removeprefix(PREFIX)] = float(from_bytes(data, type_.dtype, type_.shape))
    if state_root(roots) != view.result:
        raise StageError(f"result of task {task}: expected state {view.result.hex()}, got another from {url}")
    return found
