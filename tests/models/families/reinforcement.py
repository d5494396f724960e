"""Reinforcement-learning losses over batches of stored transitions."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "reinforcement"
Batch = Mapping[str, Tensor]
SEEN, ACTIONS, HIDDEN = 4, 3, 16


def network(inputs: int, outputs: int) -> nn.Sequential:
    """A two-layer network."""
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))


class Target(nn.Module):
    """A target network: a copy in buffers, which the step moves towards the original."""

    def __init__(self, model: nn.Module, rate: float = 0.05) -> None:
        super().__init__()
        self.rate, self.skeleton = rate, (copy.deepcopy(model).to("meta"),)
        self.names = [name for name, _ in model.named_parameters()]
        for k, p in enumerate(model.parameters()):
            self.register_buffer(f"weight{k}", p.detach().clone())

    def forward(self, *inputs: Tensor) -> Tensor:
        weights = {name: self.get_buffer(f"weight{k}") for k, name in enumerate(self.names)}
        values: Tensor = torch.func.functional_call(self.skeleton[0], weights, inputs)
        return values

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        """Move the copy towards `model`."""
        for k, p in enumerate(model.parameters()):
            self.get_buffer(f"weight{k}").lerp_(p, self.rate)


def steps() -> dict[str, Tensor]:
    """Stored transitions of an agent."""
    return {
        "seen": normal(ROWS, SEEN),
        "action": integers(0, ACTIONS, ROWS),
        "reward": normal(ROWS, seed=3),
        "next": normal(ROWS, SEEN, seed=4),
        "done": integers(0, 2, ROWS, seed=5).float(),
    }


class DQN(nn.Module):
    """A double duelling DQN."""

    def __init__(self) -> None:
        super().__init__()
        self.value = network(SEEN, 1 + ACTIONS)
        self.target = Target(self.value)

    @staticmethod
    def combined(both: Tensor) -> Tensor:
        value, gain = both.split([1, ACTIONS], -1)
        found: Tensor = value + gain - gain.mean(-1, keepdim=True)
        return found

    def forward(
        self, seen: Tensor, action: Tensor, reward: Tensor, following: Tensor, done: Tensor
    ) -> Tensor:
        ours = self.combined(self.value(seen)).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.combined(self.value(following)).argmax(1, keepdim=True)
            later = self.combined(self.target(following)).gather(1, best).squeeze(1)
            right = reward + 0.99 * (1 - done) * later
        loss = F.smooth_l1_loss(ours, right)
        self.target.follow(self.value)
        return loss


@entry(ENTRIES, FAMILY, "double duelling DQN with a target network", quick=True)
def dqn() -> Training:
    return Training(DQN(), lambda m, b: m(b["seen"], b["action"], b["reward"], b["next"], b["done"]), steps())


class Distributional(nn.Module):
    """C51: a distribution of returns, projected onto its support."""

    def __init__(self, atoms: int = 7) -> None:
        super().__init__()
        self.atoms = atoms
        self.value = network(SEEN, ACTIONS * atoms)
        self.target = Target(self.value)
        self.register_buffer("support", torch.linspace(-3, 3, atoms))

    def forward(
        self, seen: Tensor, action: Tensor, reward: Tensor, following: Tensor, done: Tensor
    ) -> Tensor:
        support = self.get_buffer("support")
        ours = self.value(seen).view(-1, ACTIONS, self.atoms).log_softmax(-1)
        ours = ours[torch.arange(len(ours), device=ours.device), action]
        with torch.no_grad():
            later = self.target(following).view(-1, ACTIONS, self.atoms).softmax(-1)
            best = (later * support).sum(-1).argmax(-1)
            later = later[torch.arange(len(later), device=later.device), best]
            moved = (reward[:, None] + 0.99 * (1 - done[:, None]) * support).clamp(-3, 3)
            near = (1 - (moved[:, None] - support[:, None]).abs()).clamp(0, 1)
            right = (near * later[:, None]).sum(-1)
        self.target.follow(self.value)
        found: Tensor = -(right * ours).sum(-1).mean()
        return found


@entry(ENTRIES, FAMILY, "distributional C51")
def distributional() -> Training:
    return Training(
        Distributional(), lambda m, b: m(b["seen"], b["action"], b["reward"], b["next"], b["done"]), steps()
    )


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.actor, self.critic = (
            network(SEEN, HIDDEN),
            nn.Linear(HIDDEN, 3),
            nn.Linear(HIDDEN, 1),
        )

    def forward(self, seen: Tensor) -> tuple[Categorical, Tensor]:
        x = self.trunk(seen).relu()
        return Categorical(logits=self.actor(x)), self.critic(x).squeeze(-1)


@entry(ENTRIES, FAMILY, "A2C")
def a2c() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        policy, value = m(b["seen"])
        gain = b["reward"] - value.detach()
        chosen = policy.log_prob(b["action"]) * gain
        found: Tensor = -chosen.mean() + 0.5 * F.mse_loss(value, b["reward"]) - 0.01 * policy.entropy().mean()
        return found

    data = steps()
    return Training(ActorCritic(), loss, {name: data[name] for name in ("seen", "action", "reward")})


@entry(ENTRIES, FAMILY, "PPO with clipped ratios and values")
def ppo() -> Training:
    def loss(m: nn.Module, b: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        policy, value = m(b["seen"])
        gain = (b["gain"] - b["gain"].mean()) / (b["gain"].std() + 1e-8)
        change = policy.log_prob(b["action"]) - b["before"]
        ratio = change.exp()
        surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        near = b["value"] + (value - b["value"]).clamp(-0.2, 0.2)
        far = torch.max((value - b["return"]).square(), (near - b["return"]).square()).mean()
        entropy = policy.entropy().mean()
        with torch.no_grad():
            metrics = {
                "divergence": (ratio - 1 - change).mean(),
                "clipped": ((ratio - 1).abs() > 0.2).float().mean(),
            }
        return -surrogate + 0.5 * far - 0.01 * entropy, metrics

    data = {
        "seen": normal(ROWS, SEEN),
        "action": integers(0, ACTIONS, ROWS),
        "before": -normal(ROWS, seed=3).abs(),
        "gain": normal(ROWS, seed=4),
        "value": normal(ROWS, seed=5),
        "return": normal(ROWS, seed=6),
    }
    return Training(ActorCritic(), loss, data)


class SAC(nn.Module):
    """Actor, two critics and temperature in one loss; every loss term trains one part only."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = network(SEEN, 2 * ACTIONS)
        self.critics = nn.ModuleList(network(SEEN + ACTIONS, 1) for _ in range(2))
        self.targets = nn.ModuleList(Target(critic) for critic in self.critics)
        self.heat = nn.Parameter(torch.tensor(-1.0))

    def policy(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.actor(seen).chunk(2, -1)
        z = Normal(mean, log_scale.clamp(-5, 2).exp()).rsample()
        logs = Normal(mean, log_scale.clamp(-5, 2).exp()).log_prob(z)
        logs = logs - 2 * (math.log(2) - z - F.softplus(-2 * z))
        return z.tanh(), logs.sum(-1)

    def forward(
        self, seen: Tensor, action: Tensor, reward: Tensor, following: Tensor, done: Tensor
    ) -> Tensor:
        heat = self.heat.detach().exp()
        with torch.no_grad():
            later, logs = self.policy(following)
            values = [target(torch.cat([following, later], -1)).squeeze(-1) for target in self.targets]
            right = reward + 0.99 * (1 - done) * (torch.min(*values) - heat * logs)
        both = torch.cat([seen, action], -1)
        loss = sum((F.mse_loss(critic(both).squeeze(-1), right) for critic in self.critics), torch.zeros(()))
        mine, logs = self.policy(seen)
        both = torch.cat([seen, mine], -1)
        fixed = [
            torch.func.functional_call(c, {name: p.detach() for name, p in c.named_parameters()}, (both,))
            for c in self.critics
        ]
        loss = loss + (heat * logs - torch.min(fixed[0], fixed[1]).squeeze(-1)).mean()
        loss = loss - (self.heat.exp() * (logs.detach() - ACTIONS)).mean()
        for target, critic in zip(self.targets, self.critics):
            target.follow(critic)  # type: ignore[operator]
        found: Tensor = loss
        return found


@entry(ENTRIES, FAMILY, "SAC with a learnt temperature")
def sac() -> Training:
    data = {**steps(), "action": normal(ROWS, ACTIONS, seed=7).tanh()}
    return Training(SAC(), lambda m, b: m(b["seen"], b["action"], b["reward"], b["next"], b["done"]), data)


@entry(ENTRIES, FAMILY, "REINFORCE of a squashed normal distribution")
def squashed() -> Training:
    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean, self.scale = network(SEEN, ACTIONS), nn.Parameter(torch.zeros(ACTIONS))

        def forward(self, seen: Tensor) -> TransformedDistribution:
            inner = Independent(Normal(self.mean(seen), self.scale.exp()), 1)
            return TransformedDistribution(inner, [TanhTransform()])

    def loss(m: nn.Module, b: Batch) -> Tensor:
        logs: Tensor = m(b["seen"]).log_prob(b["action"])
        return -(logs * b["reward"]).mean()

    data = {
        "seen": normal(ROWS, SEEN),
        "action": normal(ROWS, ACTIONS, seed=7).tanh() * 0.9,
        "reward": normal(ROWS, seed=3),
    }
    return Training(Policy(), loss, data)


@entry(ENTRIES, FAMILY, "implicit Q-learning: expectiles and weighted regression")
def implicit() -> Training:
    class IQL(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.v, self.actor = network(SEEN, ACTIONS), network(SEEN, 1), network(SEEN, ACTIONS)
            self.target = Target(self.q)

        def forward(
            self, seen: Tensor, action: Tensor, reward: Tensor, following: Tensor, done: Tensor
        ) -> Tensor:
            held = self.target(seen).gather(1, action[:, None]).squeeze(1)
            value = self.v(seen).squeeze(-1)
            gain = held - value
            loss = (torch.where(gain > 0, 0.7, 0.3) * gain.square()).mean()
            right = (reward + 0.99 * (1 - done) * self.v(following).squeeze(-1)).detach()
            loss = loss + F.mse_loss(self.q(seen).gather(1, action[:, None]).squeeze(1), right)
            weight = (3 * gain.detach()).exp().clamp_max(100.0)
            loss = loss + (weight * F.cross_entropy(self.actor(seen), action, reduction="none")).mean()
            self.target.follow(self.q)
            found: Tensor = loss
            return found

    return Training(IQL(), lambda m, b: m(b["seen"], b["action"], b["reward"], b["next"], b["done"]), steps())


class DecisionTransformer(nn.Module):
    """A causal transformer over interleaved returns-to-go, states and actions."""

    def __init__(self, width: int = 16, length: int = 4) -> None:
        super().__init__()
        self.times = nn.Embedding(10, width)
        self.reward, self.state = nn.Linear(1, width), nn.Linear(SEEN, width)
        self.action = nn.Linear(ACTIONS, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, 0.1, F.gelu, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, ACTIONS)
        self.register_buffer("mask", torch.ones(3 * length, 3 * length, dtype=torch.bool).triu(1))

    def forward(
        self, reward: Tensor, state: Tensor, action: Tensor, times: Tensor, present: Tensor
    ) -> Tensor:
        time = self.times(times)
        tokens = torch.stack(
            [self.reward(reward) + time, self.state(state) + time, self.action(action) + time], 2
        )
        hidden = self.layers(
            tokens.flatten(1, 2),
            mask=self.get_buffer("mask"),
            src_key_padding_mask=~present.bool().repeat_interleave(3, 1),
        )
        error = (self.head(hidden[:, 1::3]).tanh() - action).square().mean(-1)
        found: Tensor = (error * present).sum() / present.sum()
        return found


@entry(ENTRIES, FAMILY, "decision transformer")
def decisions() -> Training:
    data = {
        "reward": normal(ROWS, 4, 1),
        "state": normal(ROWS, 4, SEEN, seed=3),
        "action": normal(ROWS, 4, ACTIONS, seed=4).tanh(),
        "times": integers(0, 6, ROWS, 1) + torch.arange(4),
        "present": (torch.arange(4) < integers(1, 5, ROWS, 1, seed=5)).float(),
    }
    return Training(
        DecisionTransformer(),
        lambda m, b: m(b["reward"], b["state"], b["action"], b["times"], b["present"]),
        data,
    )
