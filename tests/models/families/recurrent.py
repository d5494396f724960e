"""Recurrent sequence models, and convolutional models that replace them."""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "recurrent"
STEPS, COLUMNS, HIDDEN, CLASSES, LETTERS = 6, 5, 8, 3, 11


class Last(nn.Module):
    """A classifier on a recurrent layer's last output."""

    def __init__(self, layer: nn.RNNBase, width: int = HIDDEN) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.layer(x)
        scores: Tensor = self.head(outputs[:, -1])
        return scores


def classifier(model: nn.Module) -> Training:
    """A training in which `model` learns to classify sequences of vectors."""
    data = {"x": normal(ROWS, STEPS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data)


def next_letter(model: nn.Module, length: int = 8) -> Training:
    """The training of a character-level language model."""
    data = {"x": integers(0, LETTERS, ROWS, length + 1)}
    return Training(
        model,
        lambda m, b: F.cross_entropy(m(b["x"][:, :-1]).flatten(0, 1), b["x"][:, 1:].flatten()),
        data,
    )


@entry(ENTRIES, FAMILY, "RNN of tanh")
def rnn() -> Training:
    return classifier(Last(nn.RNN(COLUMNS, HIDDEN, batch_first=True)))


@entry(ENTRIES, FAMILY, "RNN of ReLU")
def rectified() -> Training:
    return classifier(Last(nn.RNN(COLUMNS, HIDDEN, nonlinearity="relu", batch_first=True)))


@entry(ENTRIES, FAMILY, "LSTM", quick=True)
def lstm() -> Training:
    return classifier(Last(nn.LSTM(COLUMNS, HIDDEN, batch_first=True)))


@entry(ENTRIES, FAMILY, "GRU")
def gru() -> Training:
    return classifier(Last(nn.GRU(COLUMNS, HIDDEN, batch_first=True)))


@entry(ENTRIES, FAMILY, "bidirectional LSTM")
def bidirectional() -> Training:
    return classifier(Last(nn.LSTM(COLUMNS, HIDDEN, batch_first=True, bidirectional=True), 2 * HIDDEN))


@entry(ENTRIES, FAMILY, "GRU of two layers with dropout")
def deep() -> Training:
    return classifier(Last(nn.GRU(COLUMNS, HIDDEN, 2, batch_first=True, dropout=0.3)))


@entry(ENTRIES, FAMILY, "LSTM with projections")
def projected() -> Training:
    return classifier(Last(nn.LSTM(COLUMNS, HIDDEN, batch_first=True, proj_size=4), 4))


class Cells(nn.Module):
    """Two stacked cells in a Python loop."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(COLUMNS, HIDDEN), nn.GRUCell(HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = c = g = x.new_zeros(x.shape[0], HIDDEN)
        for step in x.unbind(1):
            h, c = self.first(step, (h, c))
            g = self.second(h, g)
        scores: Tensor = self.head(g)
        return scores


@entry(ENTRIES, FAMILY, "LSTM and GRU cells in a loop")
def cells() -> Training:
    return classifier(Cells())


class ConvLSTM(nn.Module):
    """Predicts the next frame of a short film."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.channels = channels
        self.gates = nn.Conv2d(1 + channels, 4 * channels, 3, padding=1)
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, film: Tensor) -> Tensor:
        h = c = film.new_zeros(len(film), self.channels, *film.shape[-2:])
        frames = []
        for frame in film[:, :-1].unbind(1):
            i, f, o, g = self.gates(torch.cat([frame, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            frames.append(self.head(h))
        return F.mse_loss(torch.stack(frames, 1), film[:, 1:])


@entry(ENTRIES, FAMILY, "ConvLSTM")
def convolutional() -> Training:
    return Training(ConvLSTM(), lambda m, b: m(b["x"]), {"x": normal(ROWS, 4, 1, 6, 6)})


class Translator(nn.Module):
    """Encoder and decoder with Bahdanau attention. The first letter fed to the decoder comes from the target.
    Each later letter comes from the target with chance `forced`, and is otherwise the decoder's prediction.
    """

    def __init__(self, forced: float) -> None:
        super().__init__()
        self.forced = forced
        self.embed = nn.Embedding(LETTERS, HIDDEN, padding_idx=0)
        self.encoder = nn.GRU(HIDDEN, HIDDEN, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * HIDDEN, HIDDEN)
        self.query, self.key = nn.Linear(HIDDEN, HIDDEN), nn.Linear(2 * HIDDEN, HIDDEN)
        self.energy = nn.Linear(HIDDEN, 1, bias=False)
        self.decoder = nn.GRUCell(3 * HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, LETTERS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encoder(self.embed(source))
        h = self.bridge(torch.cat([last[0], last[1]], 1)).tanh()
        keys, padding = self.key(memory), source == 0
        letter, scores = target[:, 0], []
        for k in range(1, target.shape[1]):
            energies = self.energy((keys + self.query(h)[:, None]).tanh()).squeeze(-1)
            weights = energies.masked_fill(padding, float("-inf")).softmax(-1)
            context = torch.einsum("bs,bsd->bd", weights, memory)
            h = self.decoder(torch.cat([self.embed(letter), context], 1), h)
            scores.append(self.head(h))
            letter = target[:, k]
            if self.forced < 1:
                draws = torch.rand(len(letter), device=letter.device)
                letter = torch.where(draws < self.forced, letter, scores[-1].argmax(-1))
        return F.cross_entropy(torch.stack(scores, 1).flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)


def translation(forced: float) -> Training:
    """A training in which a `Translator` learns to translate letter sequences. Both the source and the target
    are padded with 0.
    """
    source, target = integers(1, LETTERS, ROWS, 5), integers(1, LETTERS, ROWS, 5, seed=3)
    lengths = integers(2, 6, ROWS, 1, seed=4)
    data = {"source": source * (torch.arange(5) < lengths), "target": target * (torch.arange(5) < lengths)}
    return Training(Translator(forced), lambda m, b: m(b["source"], b["target"]), data)


@entry(ENTRIES, FAMILY, "sequence to sequence with attention, teacher forcing")
def taught() -> Training:
    return translation(1.0)


@entry(ENTRIES, FAMILY, "sequence to sequence with scheduled sampling")
def sampled() -> Training:
    return translation(0.5)


class Speech(nn.Module):
    """An LSTM with CTC loss, for audio and labels of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(COLUMNS, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, 5)

    def forward(self, x: Tensor, labels: Tensor, spoken: Tensor, written: Tensor) -> Tensor:
        logs = self.head(self.layer(x)[0]).log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(logs, labels, spoken, written)


@entry(ENTRIES, FAMILY, "LSTM with CTC")
def ctc() -> Training:
    data = {
        "x": normal(ROWS, 8, COLUMNS),
        "labels": integers(1, 5, ROWS, 3),
        "spoken": integers(6, 9, ROWS, seed=3),
        "written": integers(1, 4, ROWS, seed=4),
    }
    return Training(Speech(), lambda m, b: m(b["x"], b["labels"], b["spoken"], b["written"]), data)


class LettersToWords(nn.Module):
    """Convolutions over a word's letters with max pooling, a highway layer, and an LSTM over words."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(LETTERS, 4)
        self.filters = nn.ModuleList(nn.Conv1d(4, 4, k) for k in (2, 3))
        self.gate, self.carry = nn.Linear(8, 8), nn.Linear(8, 8)
        self.layer = nn.LSTM(8, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, 7)

    def forward(self, words: Tensor) -> Tensor:
        letters = self.embed(words.flatten(0, 1)).transpose(1, 2)
        x = torch.cat([each(letters).tanh().amax(-1) for each in self.filters], 1)
        gate = self.gate(x).sigmoid()
        x = gate * self.carry(x).relu() + (1 - gate) * x
        scores: Tensor = self.head(self.layer(x.view(*words.shape[:2], -1))[0])
        return scores


@entry(ENTRIES, FAMILY, "LSTM over a CNN of letters")
def letters() -> Training:
    data = {"x": integers(0, LETTERS, ROWS, 4, 6), "y": integers(0, 7, ROWS, 4)}
    return Training(
        LettersToWords(),
        lambda m, b: F.cross_entropy(m(b["x"]).flatten(0, 1), b["y"].flatten()),
        data,
    )


class Causal(nn.Conv1d):
    """A causal convolution: no output depends on later inputs."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(F.pad(input, ((self.kernel_size[0] - 1) * self.dilation[0], 0)))


class TemporalBlock(nn.Module):
    """Two causal convolutions with weight norm and dropout, and a residual connection."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.Sequential()
        for _ in range(2):
            self.layers += nn.Sequential(
                norm(Causal(HIDDEN, HIDDEN, 2, dilation=dilation)), nn.ReLU(), nn.Dropout(0.1)
            )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.layers(x))


class Convolved(nn.Module):
    """Embeds letters, applies `layers` to a tensor [B, C, T], and scores the next letter."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(LETTERS, HIDDEN), layers
        self.head = nn.Linear(HIDDEN, LETTERS)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layers(self.embed(x).transpose(1, 2)).transpose(1, 2))
        return scores


@entry(ENTRIES, FAMILY, "temporal convolutional network")
def temporal() -> Training:
    return next_letter(Convolved(nn.Sequential(TemporalBlock(1), TemporalBlock(2))))


class WaveNet(nn.Module):
    """Gated dilated convolutions with residual and skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.dilated = nn.ModuleList(Causal(HIDDEN, 2 * HIDDEN, 2, dilation=2**k) for k in range(3))
        self.residual = nn.ModuleList(nn.Conv1d(HIDDEN, HIDDEN, 1) for _ in range(3))
        self.skip = nn.ModuleList(nn.Conv1d(HIDDEN, HIDDEN, 1) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros_like(x)
        for dilated, residual, skip in zip(self.dilated, self.residual, self.skip):
            left, gate = dilated(x).chunk(2, 1)
            z = left.tanh() * gate.sigmoid()
            x, total = x + residual(z), total + skip(z)
        return F.relu(total)


@entry(ENTRIES, FAMILY, "WaveNet")
def wavenet() -> Training:
    return next_letter(Convolved(WaveNet()))


class MinGRU(nn.Module):
    """minGRU (Feng and others, 2024). It computes all steps at once: cumulative sums in log space replace the
    loop over the recurrence.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.new = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(1, 2)
        k, new = self.gate(x), self.new(x)
        new = torch.where(new >= 0, (new.relu() + 0.5).log(), -F.softplus(-new))
        kept = (-F.softplus(k)).cumsum(1)
        h = kept + (new - F.softplus(-k) - kept).logcumsumexp(1)
        return h.exp().transpose(1, 2)


@entry(ENTRIES, FAMILY, "minGRU")
def minimal() -> Training:
    return next_letter(Convolved(MinGRU()))


class DiagonalSpace(nn.Module):
    """A diagonal state-space layer (S4D) with real numbers, computed as one long convolution. Every training
    step computes the convolution's kernel.
    """

    def __init__(self, states: int = 4) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.rand(HIDDEN).mul(-3).sub(1))
        self.decay = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(HIDDEN, 1))
        self.read = nn.Parameter(torch.randn(HIDDEN, states))
        self.skip = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        times = torch.arange(length, device=x.device, dtype=x.dtype)
        a = -self.decay.exp() * self.rate.exp()[:, None]
        kernel = torch.einsum(
            "hn,hnt->ht", self.read * self.rate.exp()[:, None], (a[..., None] * times).exp()
        )
        y = F.conv1d(F.pad(x, (length - 1, 0)), kernel.flip(-1)[:, None], groups=HIDDEN)
        return F.gelu(y + self.skip[:, None] * x)


@entry(ENTRIES, FAMILY, "diagonal state space")
def space() -> Training:
    return next_letter(Convolved(DiagonalSpace()))
