"""Library functions are close to torch in float64, and exact where arithmetic.md says so."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from protocol.program.library import CATALOGUE

MEAN = {"ignore": -100, "reduction": 1}


def run(name: str, *operands: Tensor, **attributes: float) -> Tensor:
    (result,) = CATALOGUE[name].kernel(attributes)(operands)
    return result


def test_linear_rounds_rows_to_thirteen_bits() -> None:
    x, w, bias = torch.randn(8, 100), torch.randn(5, 100), torch.randn(5)
    exact = F.linear(x.double(), w.double(), bias.double())
    # Each factor is off by at most 2^-14 of its row's power of two.
    # So a product is off by less than 2^-11 of the product of both maxima.
    bound = 100 * 2.0**-11 * x.abs().amax(1, keepdim=True) * w.abs().amax(1)
    assert bool(((run("linear", x, w, bias) - exact).abs() <= bound).all())


def test_weight_gradient_keeps_small_gradients_beside_large_ones() -> None:
    """At 13 bits, gradients below 2^-14 of the column's largest would round to zero and the sum would be biased."""
    g = torch.full((65, 1), 2.0**-15)
    g[0] = 1.0
    x = torch.ones(65, 1)
    assert run("linear_grad_weight", g, x, px=20, py=13).item() == 1.0 + 64 * 2.0**-15
    assert run("matmul", g.mT.contiguous(), x).item() == 1.0


def test_sums_are_rounded_once() -> None:
    x = torch.tensor([[2.0**24, 1.0, 1.0, 1.0, 1.0]])
    assert run("sum_rows", x).item() == 2.0**24 + 4
    assert run("sum_columns", x.mT.contiguous()).item() == 2.0**24 + 4


def test_units_are_combined_exactly_in_any_order() -> None:
    units = [torch.tensor([[x, 1.0]]) for x in (2.0**24, 1.0, 1.0, 1.0, 1.0, -(2.0**24))]
    for order in (units, units[::-1], units[2:] + units[:2]):
        assert run("sum_units", *order, divisor=2).tolist() == [[2.0, 3.0]]
    assert run("sum_units", *units[:3], divisor=3)[0, 0].item() == torch.tensor((2.0**24 + 2) / 3).item()


@pytest.mark.parametrize("classes", [2, 10, 33])
def test_cross_entropy_and_its_gradient_follow_torch(classes: int) -> None:
    logits = (torch.randn(16, classes) * 4).requires_grad_()
    labels = torch.randint(0, classes, (16,))
    expected = F.cross_entropy(logits, labels)
    (gradient,) = torch.autograd.grad(expected, logits)
    y = run("log_softmax", logits.detach())
    torch.testing.assert_close(y, F.log_softmax(logits.detach(), 1), rtol=1e-5, atol=1e-6)
    loss, total = CATALOGUE["nll_loss"].kernel(MEAN)([y, labels.int()])
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-5, atol=1e-6)
    assert total.item() == 16
    g = run("nll_loss_grad", torch.tensor(1.0), labels.int(), total, classes=classes, **MEAN)
    torch.testing.assert_close(run("log_softmax_grad", g, y), gradient, rtol=1e-4, atol=1e-7)


def test_ignored_labels_count_for_nothing_and_others_outside_the_classes_add_nothing() -> None:
    y = torch.log_softmax(torch.randn(4, 3), 1)
    labels = torch.tensor([0, -100, 3, 2], dtype=torch.int32)
    loss, total = CATALOGUE["nll_loss"].kernel(MEAN)([y, labels])
    assert total.item() == 3
    torch.testing.assert_close(loss, -(y[0, 0] + y[3, 2]) / 3)
    g = run("nll_loss_grad", torch.tensor(1.0), labels, total, classes=3, **MEAN)
    torch.testing.assert_close(g.sum(), torch.tensor(-2 / 3))
    assert not bool(g[1:3].any())
    nothing = CATALOGUE["nll_loss"].kernel(MEAN)([y, torch.full_like(labels, -100)])[0]
    assert bool(nothing.isnan())


@pytest.mark.parametrize("width", [1, 8, 300])
def test_layer_norm_and_its_gradients_follow_torch(width: int) -> None:
    x = (torch.randn(20, width) * 3 + 5).double().requires_grad_()
    gain, bias = (torch.randn(width).double().requires_grad_() for _ in range(2))
    expected = F.layer_norm(x, (width,), gain, bias, 1e-5)
    g = torch.randn(20, width)
    gradients = torch.autograd.grad(expected, (x, gain), g.double())
    given = [t.detach().float() for t in (x, gain, bias)]
    y, mean, rstd = CATALOGUE["layer_norm"].kernel({"eps": 1e-5})(given)
    torch.testing.assert_close(y.double(), expected.detach(), rtol=1e-4, atol=1e-4)
    dx = run("layer_norm_grad", g, given[0], mean, rstd, given[1])
    torch.testing.assert_close(dx.double(), gradients[0], rtol=1e-3, atol=2e-4)
    dgain = run("layer_norm_grad_gain", g, given[0], mean, rstd)
    torch.testing.assert_close(dgain.double(), gradients[1], rtol=1e-3, atol=2e-4)


def test_rows_of_an_embedding_add_up_once_rounded() -> None:
    g = torch.tensor([[2.0**24], [1.0], [1.0], [1.0], [5.0]])
    index = torch.tensor([1, 1, 1, 0, -1], dtype=torch.int32)
    assert run("embedding_grad", g, index, rows=3).flatten().tolist() == [1.0, 2.0**24 + 2, 0.0]


@pytest.mark.parametrize("tanh", [False, True])
def test_gelu_and_its_gradient_follow_torch(tanh: bool) -> None:
    x = torch.linspace(-12, 12, 4001, dtype=torch.float64).float().double().requires_grad_()
    expected = F.gelu(x, approximate="tanh" if tanh else "none")
    (gradient,) = torch.autograd.grad(expected.sum(), x)
    given = x.detach().float()
    torch.testing.assert_close(
        run("gelu", given, tanh=tanh).double(), expected.detach(), rtol=1e-5, atol=1e-6
    )
    slope = run("gelu_grad", torch.ones_like(given), given, tanh=tanh)
    torch.testing.assert_close(slope.double(), gradient, rtol=1e-5, atol=2e-6)


def test_silu_and_its_gradient_follow_torch() -> None:
    x = torch.linspace(-60, 60, 4001, dtype=torch.float64).float().double().requires_grad_()
    expected = F.silu(x)
    (gradient,) = torch.autograd.grad(expected.sum(), x)
    given = x.detach().float()
    torch.testing.assert_close(run("silu", given).double(), expected.detach(), rtol=2e-6, atol=1e-30)
    slope = run("silu_grad", torch.ones_like(given), given)
    torch.testing.assert_close(slope.double(), gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("momentum", "weight_decay", "nesterov"), [(0.9, 0.0, False), (0.8, 0.05, True), (0.0, 0.1, False)]
)
def test_sgd_follows_torch(momentum: float, weight_decay: float, nesterov: bool) -> None:
    p = torch.nn.Parameter(torch.randn(50))
    options = {"momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
    optimizer = torch.optim.SGD([p], lr=0.1, **options)  # type: ignore[arg-type]
    ours, buffer, rate = p.detach().clone(), torch.zeros(50), torch.tensor(0.1)
    for _ in range(5):
        g = torch.randn(50)
        p.grad = g.clone()
        optimizer.step()
        if momentum:
            kernel = CATALOGUE["sgd_momentum"].kernel(options)
            ours, buffer = kernel([ours, g, buffer, rate])
        else:
            (ours,) = CATALOGUE["sgd"].kernel({"weight_decay": weight_decay})([ours, g, rate])
    torch.testing.assert_close(ours, p.detach(), rtol=1e-6, atol=1e-6)


def test_batches_are_uniform_and_differ_by_step() -> None:
    key = torch.tensor([7, 9], dtype=torch.int32)
    draws = [
        run("draw_batch", key, torch.tensor(step, dtype=torch.int32), batch=1000, rows=10, stream=0)
        for step in range(10)
    ]
    counts = torch.bincount(torch.cat(draws), minlength=10)
    assert len(counts) == 10
    assert bool(((counts - 1000).abs() < 150).all())  # five standard deviations of 30
    assert not torch.equal(draws[0], draws[1])


@pytest.mark.parametrize(("rows", "batch"), [(1, 1), (2, 1), (3, 2), (64, 64), (1001, 10)])
def test_no_row_comes_twice_in_an_epoch_and_epochs_differ(rows: int, batch: int) -> None:
    key, batches = torch.tensor([7, 9], dtype=torch.int32), rows // batch
    epochs = []
    for epoch in range(4):
        steps = range(epoch * batches, (epoch + 1) * batches)
        draws = [
            run("draw_from_epoch", key, torch.tensor(s, dtype=torch.int32), batch=batch, rows=rows, stream=0)
            for s in steps
        ]
        drawn = torch.cat(draws).tolist()
        assert len(set(drawn)) == batch * batches
        assert set(drawn) <= set(range(rows))
        epochs.append(tuple(drawn))
    assert rows <= 3 or len(set(epochs)) == 4


def test_every_row_is_as_likely_at_every_place_and_beside_every_other() -> None:
    rows, epochs = 40, 2000
    key = torch.tensor([7, 9], dtype=torch.int32)
    places, gaps = torch.zeros(rows, rows), torch.zeros(rows)
    for epoch in range(epochs):
        step = torch.tensor(epoch, dtype=torch.int32)
        row = run("draw_from_epoch", key, step, batch=rows, rows=rows, stream=0).long()
        places[torch.arange(rows), row] += 1
        gaps += torch.bincount((row[1:] - row[:-1]) % rows, minlength=rows)
    for counts, freedom in ((places, (rows - 1) ** 2), (gaps[1:], rows - 2)):
        expected = counts.mean()
        chi = ((counts - expected) ** 2 / expected).sum()
        assert abs(chi / freedom - 1) < 5 * (2 / freedom) ** 0.5


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt"])
def test_elementary_functions_follow_torch(name: str) -> None:
    x = torch.randn(1000) * 3
    x = x.abs() if name in ("log", "rsqrt") else x
    expected = getattr(torch, name)(x.double())
    torch.testing.assert_close(run(name, x).double(), expected, rtol=2.5e-7, atol=0.0)
