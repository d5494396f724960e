"""What `assay verify` has found, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.results import WITH_RESULT
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode

if TYPE_CHECKING:
    from assay.replays import Finding
    from assay.weights import Weights


@dataclass
class Report:
    """Sentences on what was checked and what was not, and the findings of replays. `has_proof` says whether a
    proof of the task's result was compared with the chain.
    """

    has_proof: bool
    task: int
    chain_id: int
    market: str
    status: TaskStatus
    final: bool
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    first_false: tuple[int, int] | None = None
    """A range that contains the first false segment, as the numbers of the range's first and last segment.
    None unless a comparison of segment trees found a difference.
    """
    weights: Weights | None = None

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is equal."""
        return self.first_false is None and all(finding.equal for finding in self.findings)

    @property
    def code(self) -> ExitCode:
        """The exit code. It is FRAUD if something differs. It is also FRAUD if the solver was convicted: the
        result is then false, whatever was compared. It is HOPELESS if a proof was compared and its task no
        longer has a result.
        """
        if not self.equal or self.status is TaskStatus.SLASHED:
            return ExitCode.FRAUD
        return ExitCode.HOPELESS if self._is_void else ExitCode.FINE

    @property
    def _is_void(self) -> bool:
        return self.has_proof and self.status not in WITH_RESULT

    def lines(self) -> list[str]:
        """The report in words."""
        end = ", final" if self.final else ""
        lines = [finding.line() for finding in self.findings]
        if self.first_false is not None:
            first, last = self.first_false
            where = f"segment {first}" if first == last else f"one of segments {first} to {last}"
            lines.append(f"FALSE: the first wrong segment is {where}")
        lines.append(
            f"task {self.task} of chain {self.chain_id}, market {self.market}: {self.status.name.lower()}{end}"
        )
        lines += [f"  checked: {sentence}" for sentence in self.checked]
        lines += [f"  not checked: {sentence}" for sentence in self.unchecked]
        if not self.equal:
            lines.append("NOT EQUAL: the solver has committed to what the program does not give")
        elif self.status is TaskStatus.SLASHED or self._is_void:
            lines.append(f"the result does not stand: its task is {self.status.name.lower()}")
        else:
            lines.append("equal: all that was checked is as committed")
        return lines

    def data(self) -> dict[str, Any]:
        """The report as data for JSON."""
        weights = self.weights
        return {
            "task": self.task,
            "chain_id": self.chain_id,
            "market": self.market,
            "status": self.status.name.lower(),
            "final": self.final,
            "equal": self.equal,
            "segments": [
                {
                    "segment": finding.segment,
                    "equal": finding.equal,
                    "committed": finding.committed,
                    "computed": finding.computed,
                    "tensors": finding.tensors,
                }
                for finding in self.findings
            ],
            "first_false": self.first_false,
            "weights": None
            if weights is None
            else {"tensors": weights.tensors, "missing": list(weights.missing)},
            "checked": self.checked,
            "not_checked": self.unchecked,
        }
