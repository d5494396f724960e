"""Which errors of the libraries are the operator's, and the exit code of each: the same for all three parties."""

from __future__ import annotations

from protocol.node.exits import ExitCode, OperatorError


def known(error: BaseException) -> ExitCode | None:
    """The exit code of an error that an operator can act on; None for a defect. What to import is asked for last."""
    if isinstance(error, OperatorError):
        return error.exit_code
    from protocol.chain.errors import (
        AccountInUse,
        ChainError,
        NotMined,
        PortInUse,
        RpcError,
        UnstableChain,
    )

    if isinstance(error, (RpcError, NotMined, UnstableChain, AccountInUse, PortInUse)):
        return ExitCode.RETRY
    if isinstance(error, ChainError):
        return ExitCode.HOPELESS
    from protocol.commitments import CommitmentError
    from protocol.numerics.kernels.dispatch import NoKernel
    from protocol.numerics.self_check import SelfCheckError
    from protocol.program.errors import ProgramError
    from protocol.tasks.bundles import BundleError
    from protocol.tasks.task import TermsError

    if isinstance(error, (BundleError, CommitmentError, NoKernel, ProgramError, SelfCheckError, TermsError)):
        return ExitCode.HOPELESS
    return None
