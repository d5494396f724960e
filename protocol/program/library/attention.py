"""Finds attention among the instructions of a submitted program, and runs it as one operation.

Programs are not changed. The search considers every call of `softmax` in a frame. The softmax's operand must
come from a product, through scalings and masks only. The softmax's result, with or without dropout, must go
into a product. The backward pass is found as well. If no other instruction reads the values in between, fast
execution may run fused attention instead, with the same bits (`numerics.kernels.attention`). Traces, disputes
and machines without that kernel run the instructions.

Functions are recognised by their kernels, which were found by program id. Attention that differs in any
detail is not fused: for example, if other instructions read intermediate results, if the mask is drawn in
another way, or if a product has a bias.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from protocol.numerics.kernels.attention import Backward, Dropout, Forward, Fused
from protocol.numerics.kernels.attention_dispatch import attention_for
from protocol.numerics.kernels.attention_shape_classes import Forms, Kind, Plan
from protocol.numerics.kernels.dispatch import NoKernel
from protocol.program.execute import Fusion, Kernel
from protocol.program.library.contractions import CONTRACTED
from protocol.program.library.frames import Frame, Link, NoMatch, Pair, Product, Values
from protocol.program.opcodes import Op
from protocol.program.program import Program


@dataclass(frozen=True)
class Drop:
    """Dropout in a program.

    `key` and `step` are the leaves of the key and of the step. `stream` and `below` are the stream and the
    bound of the mask. `kept` is the factor for kept values. `factors` is the leaf of the tensor of factors,
    and `numbers` are the numbers of the instructions that compute this tensor.
    """

    key: int
    step: int
    stream: int
    below: int
    kept: float
    factors: int
    numbers: frozenset[int]

    def of(self, values: Values) -> Dropout:
        """This dropout with the values of its leaves."""
        return Dropout(values[self.key], values[self.step], self.stream, self.below, self.kept)


def fusions(program: Program, kernels: Mapping[bytes, Kernel]) -> tuple[Fusion, ...]:
    """All forward and backward passes of attention in the program's own frame that can run fused."""
    frame = Frame(program, kernels)
    found: list[Fusion] = []
    for number in program.calls():
        if frame.name(number) == "softmax":
            try:
                found += _Attention(frame, number).fusions()
            except NoMatch:
                continue
    return tuple(found)


def _rounded(x: float) -> float:
    """The nearest f32."""
    value: float = struct.unpack("<f", struct.pack("<f", x))[0]
    return value


def _forms(links: Sequence[Link]) -> Forms:
    """The kind and the value of the change that each link makes. Links that only change the shape are left out."""
    return tuple((link.kind, link.value) for link in links if link.kind is not None)


class _Attention:
    """The attention around one softmax. Raises `NoMatch` if no attention is found."""

    def __init__(self, frame: Frame, softmax: int) -> None:
        self.frame = frame
        instruction, kernel = frame.program.instructions[softmax], frame.kernel(softmax)
        self.safe = kernel is not None and bool(kernel.attributes["safe"])
        self.scores, self.links = self._above(instruction.operands[0].leaf, softmax)
        self.own = {softmax, self.scores.number, *(link.number for link in self.links)}
        self.kept = self._same(instruction.first, self.own)
        self.drop, self.dropped = self._dropout()
        self.readers = frame.readers(*self.kept, *self.dropped) - self.own

    def fusions(self) -> list[Fusion]:
        """The forward pass, and the backward pass if there is one."""
        products = [self.frame.product(n) for n in self.readers if self.frame.name(n) in CONTRACTED]
        out = [p for p in products if p.left.leaf in self.dropped and not p.left.turned]
        if len(out) != 1 or out[0].right.leaf in self.dropped:
            raise NoMatch
        rest = self.readers - {out[0].number}
        if not rest and self.drop is not None and self.frame.readers(self.drop.factors) - self.own:
            raise NoMatch
        made = [self._forward(out[0])]
        return [*made, self._backward(out[0], rest)] if rest else made

    def _above(self, leaf: int, reader: int) -> tuple[Product, list[Link]]:
        """The product from which the value `leaf` is computed, and the changes between the product and the
        value, first to last.

        Raises `NoMatch` unless each value on the way, from the product to `leaf`, has only one reader: the
        next instruction on the way. The only reader of `leaf` itself must be instruction `reader`.
        """
        links: list[Link] = []
        while True:
            if self.frame.readers(leaf) != {reader}:
                raise NoMatch
            reader = self.frame.program.producer(leaf)
            if self.frame.program.instructions[reader].op is Op.CALL:
                return self.frame.product(reader), links[::-1]
            links.append(self.frame.link(reader))
            leaf = links[-1].source

    def _same(self, leaf: int, numbers: set[int]) -> set[int]:
        """The leaf and all reshapes of it. The numbers of the reshaping instructions are added to `numbers`."""
        found = {leaf}
        for number in sorted(self.frame.readers(leaf)):
            instruction = self.frame.program.instructions[number]
            if instruction.op is Op.STRIDED:
                link = self.frame.link(number)
                numbers.add(link.number)
                found |= self._same(instruction.first, numbers)
        return found

    def _dropout(self) -> tuple[Drop | None, set[int]]:
        """The dropout of the probabilities, and the leaves that hold the probabilities after dropout. If
        there is no dropout, None and the leaves that hold the probabilities.
        """
        multiplied = [
            n for n in self.frame.readers(*self.kept) if self.frame.program.instructions[n].op is Op.MUL
        ]
        if not multiplied:
            return None, self.kept
        if len(multiplied) != 1:
            raise NoMatch
        instruction = self.frame.program.instructions[multiplied[0]]
        x, y = instruction.operands
        factors = y if x.leaf in self.kept else x
        if x.type.shape != y.type.shape or factors.leaf in self.kept:
            raise NoMatch
        drop = self._factors(factors.leaf)
        self.own |= {multiplied[0], *drop.numbers}
        return drop, self._same(instruction.first, self.own)

    def _factors(self, leaf: int) -> Drop:
        """The dropout whose tensor of factors is `leaf`: a mask that nothing else reads, times a positive
        constant.

        Raises `NoMatch` for other factors.
        """
        program = self.frame.program
        links, source = [], leaf
        while program.instructions[number := program.producer(source)].op is not Op.CALL:
            links.append(self.frame.link(number))
            source = links[-1].source
            if self.frame.readers(source) != {number}:
                raise NoMatch
        kernel, scalings = self.frame.kernel(number), [link for link in links if link.kind is not None]
        if kernel is None or kernel.function.name != "keep_mask" or len(scalings) != 1:
            raise NoMatch
        # Rounding the float64 quotient of two f32 to f32 gives the f32 quotient: 53 >= 2 * 24 + 2.
        value, kind = scalings[0].value, scalings[0].kind
        kept = value if kind is Kind.TIMES else 1 / value if kind is Kind.OVER and value > 1e-38 else math.nan
        if not 0 < kept < 1e38:
            raise NoMatch
        key, step = (operand.leaf for operand in program.instructions[number].operands)
        stream, below = int(kernel.attributes["stream"]), int(kernel.attributes["below"])
        numbers = frozenset((number, *(link.number for link in links)))
        return Drop(key, step, stream, below, _rounded(kept), leaf, numbers)

    def _forward(self, out: Product) -> Fusion:
        def run(values: Values) -> tuple[Tensor, ...]:
            return (self._chain().forward(self._given(values, out.right.of(values), out.bits)),)

        (m, n), (_, e) = (self.frame.program.leaf_type(p.result).shape[-2:] for p in (self.scores, out))
        self.plan = Plan(
            m,
            n,
            self.frame.terms(self.scores),
            e,
            self.scores.bits,
            out.bits,
            changes=_forms(self.links),
            safe=self.safe,
            dropout=self.drop is not None,
        )
        leaves = {*self._leaves(), out.right.leaf}
        return self._fusion(self.own | {out.number}, out.number, leaves, (out.result,), run)

    def _backward(self, out: Product, rest: set[int]) -> Fusion:
        frame = self.frame
        grads = [n for n in rest if frame.name(n) == "softmax_grad"]
        own = set(rest)
        if len(grads) != 1 or frame.program.instructions[grads[0]].operands[1].leaf not in self.kept:
            raise NoMatch
        of_p, undropped = self._of_p(frame.program.instructions[grads[0]].operands[0].leaf, grads[0])
        own |= {of_p.number, *undropped}
        leaf, links = frame.program.instructions[grads[0]].first, []
        same = self._same(leaf, own)
        while len(readers := frame.readers(*same) - own) == 1 and not readers & set(frame.program.calls()):
            link = frame.link(*readers)
            if link.kind is Kind.PLUS:
                raise NoMatch
            links.append(link)
            own.add(link.number)
            same = self._same(frame.program.instructions[link.number].first, own)
        products = [frame.product(n) for n in sorted(readers)]
        of_q = [p for p in products if p.left.leaf in same and not p.left.turned and p.right.leaf not in same]
        of_k, k_turned = self._over_queries([p for p in products if p not in of_q], same)
        of_v, v_turned = self._over_queries([frame.product(n) for n in rest - set(grads)], self.dropped)
        if len(of_q) != 1:
            raise NoMatch
        own |= readers
        v_side, k_side = (p.left if turned else p.right for p, turned in ((of_v, v_turned), (of_k, k_turned)))
        # A program may multiply by any tensors; the kernel has one width for q and k, and one for v and g.
        if {frame.width(of_q[0].right), frame.width(k_side)} != {self.plan.d}:
            raise NoMatch
        if {frame.terms(of_p), frame.width(v_side)} != {self.plan.e}:
            raise NoMatch
        of_v_bits, of_k_bits = (
            p.bits[::-1] if t else p.bits for p, t in ((of_v, v_turned), (of_k, k_turned))
        )
        back = (of_p.bits, of_v_bits, of_q[0].bits, of_k_bits, v_turned, k_turned)
        self.plan = self.plan._replace(
            of_p=of_p.bits,
            of_v=of_v_bits,
            of_q=of_q[0].bits,
            of_k=of_k_bits,
            v_turned=v_turned,
            k_turned=k_turned,
            back=_forms(links),
        )

        def run(values: Values) -> tuple[Tensor, ...]:
            given = Backward(
                self._given(values, of_p.right.of(values).mT, out.bits),
                of_p.left.of(values),
                of_p.right.of(values),
                v_side.of(values),
                of_q[0].right.of(values),
                k_side.of(values),
                [link.change(values) for link in links if link.kind is not None],
                *back,
            )
            return self._chain().backward(given)

        used = {of_p.left, of_p.right, of_q[0].right, v_side, k_side}
        leaves = {*self._leaves(), *(factor.leaf for factor in used)}
        leaves |= {link.table for link in links if link.table is not None}
        last = max(frame.program.producer(leaf) for leaf in leaves)
        results = (of_v.result, of_q[0].result, of_k.result)
        at = min((n for n in own if n > last), default=None)
        if at is None or min(frame.readers(*results), default=at + 1) <= at:
            raise NoMatch
        return self._fusion(own, at, leaves, results, run)

    def _of_p(self, leaf: int, reader: int) -> tuple[Product, set[int]]:
        """The product that gives the gradient of dropout's result (without dropout, of the softmax's result),
        and the numbers of the instructions between this product and instruction `reader`, which reads `leaf`.

        These instructions may only be reshapes and, with dropout, one multiplication by the factors. Raises
        `NoMatch` for others, or if a value on the way has another reader.
        """
        own: set[int] = set()
        dropped = self.drop is None
        while True:
            if self.frame.readers(leaf) != {reader}:
                raise NoMatch
            reader = self.frame.program.producer(leaf)
            instruction = self.frame.program.instructions[reader]
            if instruction.op is Op.CALL:
                if not dropped:
                    raise NoMatch
                return self.frame.product(reader), own
            own.add(reader)
            leaves = [operand.leaf for operand in instruction.operands]
            if (
                instruction.op is Op.MUL
                and not dropped
                and self.drop is not None
                and self.drop.factors in leaves
            ):
                leaf = leaves[1 - leaves.index(self.drop.factors)]
                dropped = True
                if self.frame.readers(self.drop.factors) - self.own != {reader}:
                    raise NoMatch
                continue
            link = self.frame.link(reader)
            if link.kind is not None:
                raise NoMatch
            leaf = link.source

    @staticmethod
    def _over_queries(products: Sequence[Product], side: set[int]) -> tuple[Product, bool]:
        """Return the only product in `products`, and which of its factors is the table: True for the right
        factor, False for the left. The table is the factor whose leaf is in `side`.

        Raises `NoMatch` unless there is exactly one product, exactly one of its factors has a leaf in `side`,
        and the product contracts the table over queries.
        """
        if len(products) != 1:
            raise NoMatch
        product = products[0]
        for turned, factor, other in (
            (False, product.left, product.right),
            (True, product.right, product.left),
        ):
            if factor.leaf in side and factor.turned and other.leaf not in side:
                return product, turned
        raise NoMatch

    def _leaves(self) -> set[int]:
        """The leaves that both passes read."""
        found = {self.scores.left.leaf, self.scores.right.leaf}
        found |= {link.table for link in self.links if link.table is not None}
        return found | ({self.drop.key, self.drop.step} if self.drop is not None else set())

    def _given(self, values: Values, v: Tensor, out: Pair) -> Forward:
        return Forward(
            self.scores.left.of(values),
            self.scores.right.of(values),
            v,
            [link.change(values) for link in self.links if link.kind is not None],
            self.safe,
            None if self.drop is None else self.drop.of(values),
            self.scores.bits,
            out,
        )

    def _fusion(
        self,
        own: set[int],
        at: int,
        leaves: set[int],
        results: tuple[int, ...],
        run: Callable[[Values], tuple[Tensor, ...]],
    ) -> Fusion:
        if {self.frame.program.producer(leaf) for leaf in leaves} & (self.own | own):
            raise NoMatch
        operands = tuple(sorted(leaves))
        shapes = [self.frame.program.leaf_type(leaf).shape for leaf in results]

        def shaped(given: Sequence[Tensor]) -> tuple[Tensor, ...]:
            return tuple(x.view(shape) for x, shape in zip(run(dict(zip(operands, given))), shapes))

        return Fusion(frozenset(own), at, operands, results, self._ready, shaped)

    def _ready(self) -> bool:
        return attention_for(self.plan) is not None

    def _chain(self) -> Fused:
        chain = attention_for(self.plan)
        if chain is None:  # it was available when `_ready` was called before the step
            raise NoKernel(
                "expected this step's attention kernel, got a wrong bit from it meanwhile; run it again"
            )
        return chain
