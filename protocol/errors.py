"""The base of every error that this project raises, and the exit code with which each error ends a command.

An error says what it is about, what was expected, what came instead, and what to do about it. Each of these
is a field, and one rule renders all of them into one line. The class of the error determines the exit code.

In the tree below, the exit code is 2 unless the error's line, or the line of one of its base classes, gives
another code. A defect (InternalError) ends a command with 1 and keeps its traceback.

```text
AssayError
├── Retryable                    the same command may work later (exit code 1)
│   ├── MeasuringError           protocol.execution: the disk does not accept what measuring writes
│   ├── PortTaken                protocol.node: another server listens on the port
│   ├── NotStarted               protocol.node: the HTTP server does not start to serve
│   ├── CheckLost                protocol.execution: the check of this machine gave no answer
│   ├── ClusterLost              sim: the Ray cluster does not answer
│   └── WorkerLost               sim: a process of the pool was ended from outside
├── InternalError                one part of the project raises it for another to handle
│   ├── NumericsError            a value that lacks the type, shape or bytes that an operation needs
│   ├── NoMatch                  protocol.program: instructions that are not attention
│   ├── Unsupported              protocol.capture: a use of an operation that has no exact form
│   ├── DisputeError             protocol.dispute
│   │   ├── NothingToChallenge   the two runs do not differ in the part that the game has reached
│   │   └── NothingToReveal      none of our own trees has the demanded node
│   ├── Busy                     solver: too many clients are waiting
│   ├── Stopped                  protocol.execution: what would be computed is not needed any more
│   ├── Stopped                  protocol.exchange: a lane was asked to stop while it waited
│   ├── _NotWorth                solver: no price suits both sides
│   │   ├── _NotYet              bundles that are being fetched may need the disk
│   │   └── _NotNow              other tasks leave too little time, memory, disk or stake
│   ├── NotAnAnswer              protocol.chain: a node's reply does not answer the request
│   │   └── AnswerTooLong        the reply has more bytes than are kept
│   └── BadAnswer                protocol.node: no HTTP answer, or not the bytes that were asked for
│       ├── NotServed            the server does not have the data, or has it only later
│       ├── Broken               nobody answers, or the answer is not TLS or HTTP
│       ├── NotTaken             a webhook did not answer with success in time
│       ├── Encoded              the answer has a content encoding that was not asked for
│       └── TooLong              the answer has more bytes than expected
├── BeaconError                  protocol.beacon: an invalid key, secret, round or signature
│   ├── NetworkError             no network has that name, or its table is malformed
│   ├── NoSuchRound              a time before the first round, or a number that no round has
│   └── NoRelay                  no relay gave a valid signature of the round (exit code 1)
├── NoKernel                     protocol.numerics: no kernel gives the right bits on this machine
├── SelfCheckError               protocol.numerics: this machine computes wrong bits
├── CommitmentError              protocol.commitments
│   ├── ProofError               a proof, or a question about a tree, that does not fit the tree's size or root
│   ├── BlobError                a stored blob
│   │   ├── MissingBlob          no blob has that id
│   │   ├── CorruptBlob          the bytes do not hash to the id
│   │   ├── BlobTooLarge         the blob has more bytes than the limit
│   │   └── TooManyMaps          a large blob, but no memory map is left
│   ├── CheckpointError          a manifest or tensor that is not a well-formed part of a checkpoint
│   └── DigestError              a salt, thinning, chunk or number that is not valid for a digest
├── ProgramError                 protocol.program
│   ├── EncodingError            bytes that are not a program, instruction or type
│   ├── RuleError                operands, results or attributes that a primitive does not accept
│   ├── CheckError               a program that `check` refuses
│   ├── ValueMismatch            tensors that do not fit the program that they were given to
│   └── ParallelError            several processes that run one step
│       ├── TooManyProcesses     more processes than units: some would have no work
│       ├── PartnerLost          a process of the group no longer answers
│       └── RanksDisagree        processes that must hold the same state hold different ones
├── CaptureError                 a training step that cannot become a program
│   └── TraceError               the submitter's code cannot be traced
├── LanesError                   protocol.lanes: a step that cannot be split into lanes, or invalid numbers
│   ├── MembershipError          a membership table that contradicts itself
│   └── ScheduleError            links, speeds or widths of lanes that give no schedule
├── LoadError                    protocol.capture: a trained state that does not fit a model
├── TermsError                   protocol.tasks: terms that no market accepts
├── StakeError                   protocol.tasks: no stake makes cheating unprofitable
├── BundleError                  protocol.tasks
│   ├── BundleRefused            an address that the operator does not allow
│   ├── BundleUnavailable        the address gives nothing, or not in time (exit code 1)
│   │   ├── NoRoomYet            other bundles that are being fetched take the disk
│   │   ├── NoMapsYet            other bundles in memory take the memory maps
│   │   └── WrongFile            bytes that do not have the hash, or too many bytes
│   ├── BundleTooLarge           more bytes, tensors, programs or operations than the limits
│   │   └── TensorsTooLarge      the tensors are too large, which follows from the bundle's hash
│   ├── BundleMalformed          a manifest or program that violates the format or `check`
│   └── BundleMismatch           data that differ from what the manifest or the terms promise
├── ExchangeError                protocol.exchange: invalid input to a lane, or an invalid message of another lane
│   ├── JobError                 a job's folder or members file is malformed
│   └── MessageError             an announcement or a message that is refused
│       ├── Divergence           two lanes have announced different shared parameters
│       └── Equivocation         a lane has signed two different states of one round
├── MeasuredError                protocol.execution: the file of measured speeds is malformed
├── DeviceError                  protocol.execution: the requested device cannot be used
├── WorkersError                 protocol.execution: worker processes
│   ├── TooLittleMemory          the free memory is too small for so many workers; none was started
│   ├── WorkerLost               a worker ended, or could not continue (Retryable)
│   └── WorkerFailed             a worker found that this machine computes wrong bits
├── ChainError                   protocol.chain
│   ├── RpcError                 the node did not answer the request (exit code 1)
│   │   ├── RpcUnavailable       nobody answers at the URL
│   │   └── RpcRefused           the node answered with its own error
│   ├── WrongChain               the chain id is not the deployment's
│   │   └── ChainReset           the same id, but another first block: a development chain was restarted
│   ├── ChainTableError          a table of chains that does not have the form of chains.toml
│   ├── UnsuitableChain          the chain lacks something that the contracts need
│   ├── DeploymentError          the deployment file is missing, unreadable or outdated
│   ├── ArtifactMissing          a contract was not compiled
│   ├── AccountError             no such account, a wrong password, or a development key on a real chain
│   │   ├── NoTerminal           a password or key is needed, but there is no terminal to ask for it
│   │   └── AccountInUse         another process sends from this account (exit code 1)
│   ├── TransactionError         a transaction that was not sent, or did not do what it was meant to do
│   │   ├── InsufficientFunds    the account cannot pay for the gas
│   │   ├── Reverted             a contract refused; `name` and `arguments` are those of its error
│   │   ├── NotMined             no receipt in time; the transaction stays in the journal (exit code 1)
│   │   └── NonceTaken           another transaction used the nonce (exit code 1)
│   ├── JournalError             the journal file is damaged or has another version
│   ├── UnstableChain            the chain is reorganised faster than it can be read (exit code 1)
│   └── DevnetError              the development chain could not be started
│       ├── AnvilMissing         no anvil program
│       └── PortInUse            another server listens on the port (exit code 1)
├── NoRecommendation             protocol.tasks: no amounts suit the task and the deployment
├── UnknownArithmetic            protocol.tasks: a version that this release does not compute
├── ParametersError              protocol.chain: parameters of a deployment that cannot be read or do not fit
├── HomeError                    protocol.node: a home folder that cannot be used
├── SettingsError                protocol.node: an unknown setting, or one with an invalid value
├── DatabaseError                protocol.node: a damaged database, or one of another version, chain or account
├── NotEnoughTokens              protocol.node: the stake, a bond or the escrow cannot be locked
├── NotEnoughCoin                protocol.node: the account could not pay for the longest possible game
├── BadAddress                   protocol.node: not an http or https address with host, port and path
├── PortRefused                  protocol.node: the system does not let this process listen on the port
├── NoSuchHost                   protocol.node: the address to listen on does not belong to this machine
├── NotPublic                    protocol.node: an announced address that other machines cannot reach
├── OutOfReach                   protocol.node: a stranger's address to which nodes do not connect
├── SolverError                  solver
│   ├── StakeSlashed             the chain has slashed the solver's stake (exit code 3)
│   ├── StakeNotDeposited        the token or the vault refused a deposit of stake (exit code 1)
│   ├── RunStoreError            a task's stored run has a gap that replay cannot fill
│   ├── PublicPlaceError         a public bucket that cannot be written, or that the public cannot read (exit code 1)
│   ├── KeepingError             a checkpoint cannot be written (exit code 1)
│   ├── OrdersError              the operator's orders to the node cannot be read or written
│   ├── ControlError             the control socket cannot be used, or the node refuses the request
│   │   └── NotRunning           no node of the home folder is running (exit code 1)
│   ├── LaneRunning              another process runs this lane in the home folder (exit code 1)
│   └── AnotherNode              another node of the home folder is running (exit code 1)
├── VerifierError                verifier
│   ├── StateLost                a state that a challenge needs is lost
│   ├── Unserved                 the solver does not serve what it committed to
│   ├── DiskFull                 too little disk is free to fetch or keep more (exit code 1)
│   ├── TwoDigests               a second, different digest for a seat that was already attested
│   ├── TwoReplays               two replays of one segment that end in different states
│   └── SaltRefused              a salt that fits no other account's seat, or does not match what that seat attested
│       └── TooManySalts         more salts than are kept for one seat (exit code 1)
├── SubmitterError               assay
│   ├── DescriptionError         the file that describes a task
│   ├── SourceError              the Python file that builds a task, or what the file returned
│   ├── StartError               a state from which training cannot continue
│   ├── PlanError                an argument of `assay.train` that is not valid for a task
│   ├── DataError                training data that are not arrays of numbers
│   ├── PackageMissing           a package that something optional needs is not installed
│   ├── NotServed                the bundle is not at the address that the terms would name (exit code 1)
│   ├── TooFewVerifiers          too few registered accounts would take a seat (exit code 1)
│   ├── NobodyTakes              a solver with default settings would not bid on these terms
│   ├── NotConfirmed             nobody confirmed that the task should be posted
│   ├── NotMade                  a folder for a new task or job that exists, has no name, or cannot be made
│   ├── NotCancelled             a task that is not yours, has a bid, or no longer takes bids
│   ├── AnotherTask              a task that does not have its old number any more since a re-organisation
│   ├── NotMinedAgain            a task whose post a re-organisation has removed (exit code 1)
│   ├── MetricsError             metrics that are not served, or differ from those of the committed states
│   ├── ResultError              no result yet, or not the committed one
│   │   └── NotHeld              nobody serves a state that was committed to (exit code 1)
│   ├── ProofError               a proof of a result
│   │   ├── ProofMalformed       not a proof of a version that this release reads
│   │   └── ProofMismatch        a field that contradicts the chain (exit code 3)
│   └── WeightsError             a file of weights
│       ├── WeightsMalformed     not a safetensors file
│       └── WeightsMismatch      tensors that are not those of the result (exit code 3)
├── SimError                     sim
│   ├── ParameterError           a parameter that does not exist, or a value that is impossible
│   ├── SweepError               a sweep without points, or one that cannot be read
│   ├── ExtraMissing             a package that only studies need is not installed
│   ├── StudyError               a study or scenario that does not exist
│   ├── ResultsError             results that answer another question, or are damaged
│   ├── Disagreement             the engine's ledger and the contracts differ (exit code 3)
│   ├── Unbalanced               the engine's ledger does not add up
│   └── EndlessGame              a replayed game that does not end
├── TheoryError                  sim: an argument that no task, verifier or bidder can have
└── StageError                   examples.demo: a process did not start, or ended too early
```
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit code of a command, for the script or supervisor that started it."""

    FINE = 0
    RETRY = 1
    """A restart may help."""
    HOPELESS = 2
    """A restart does not help: wrong input, wrong chain, missing balance."""
    FRAUD = 3
    """Fraud was found, a stake was slashed, a game was lost, or a proof, weights or a simulated ledger do not
    match the contracts.
    """
    INTERRUPTED = 130


class AssayError(Exception):
    """An error on which the operator can act. Only errors of the subclass InternalError are different:
    another part of the project can act on them. `expected` and `got` are None if they are not given.

    The message is "what: expected E, got G; remedy" without the parts that are not given.
    """

    exit_code: ClassVar[ExitCode | None] = ExitCode.HOPELESS
    """The exit code of a command that this error ends. None means that the error is a defect, which is
    reported with its traceback.
    """
    has_lines: ClassVar[bool] = False
    """Whether the message is a list or contains a traceback. A command prints such a message unchanged
    instead of in one line.
    """

    def __init__(
        self,
        what: object = "",
        *,
        expected: object | None = None,
        got: object | None = None,
        remedy: str | None = None,
    ) -> None:
        self.expected = None if expected is None else str(expected)
        self.got = None if got is None else str(got)
        self.remedy = remedy
        super().__init__(_message(str(what), self.expected, self.got, remedy))


def exit_code_of(error: BaseException) -> ExitCode | None:
    """The exit code of a command that this error ends; None for a defect."""
    return error.exit_code if isinstance(error, AssayError) else None


def _message(what: str, expected: str | None, got: str | None, remedy: str | None) -> str:
    found = [f"{verb} {value}" for verb, value in (("expected", expected), ("got", got)) if value is not None]
    head = ": ".join(part for part in (what, ", ".join(found)) if part)
    return "; ".join(part for part in (head, remedy) if part)


class Retryable(AssayError):
    """The same command may work later: for example, a node does not answer, or a port is still in use."""

    exit_code = ExitCode.RETRY


class InternalError(AssayError):
    """Raised by one part of the project for another part to handle. If it reaches the command line, it is a
    defect.
    """

    exit_code = None
