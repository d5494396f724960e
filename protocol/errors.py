"""The base of every error that this project raises, and the exit code that each ends a command with.

An error says what is concerned, what was expected, what came instead and what to do about it: each a field, all of
them rendered into one line by one rule. Its class says the exit code.

Exit code 2 unless a line says another; a defect (InternalError) ends a command with 1 and keeps its traceback.

AssayError
├── Retryable                    the same command may work later
│   ├── MeasuringError           protocol.execution: the disk does not take what measuring writes
│   ├── PortTaken                protocol.node: another server listens on the port
│   ├── NotStarted               protocol.node: the HTTP server does not begin to serve
│   ├── CheckLost                protocol.execution: the check of this machine gave no answer
│   ├── ClusterLost              sim: the Ray cluster does not answer
│   └── WorkerLost               sim: a process of the pool was ended from outside
├── InternalError                one part of the project raises it for another to handle
│   ├── NumericsError            a value without the type, shape or bytes that an operation needs
│   ├── NoMatch                  protocol.program: instructions that are not attention
│   ├── Unsupported              protocol.capture: a use of an operation that has no exact form
│   ├── DisputeError             protocol.dispute
│   │   ├── NothingToChallenge   no difference where the game stands
│   │   └── NothingToReveal      a demanded node that is in none of our own trees
│   ├── Busy                     solver: too many clients wait
│   ├── Stopped                  solver: what would be computed is not needed any more
│   ├── Stopped                  protocol.exchange: a lane was asked to stop while it waited
│   ├── _NotWorth                solver: no price suits both sides
│   │   ├── _NotYet              bundles that are being fetched may take the disk
│   │   └── _NotNow              other tasks leave too little time, memory, disk or stake
│   ├── NotAnAnswer              protocol.chain: no response of a node to what was asked
│   │   └── AnswerTooLong        more bytes than are kept
│   └── BadAnswer                protocol.node: no HTTP answer, or not the bytes that were asked for
│       ├── NotServed            "not here" or "ask later"
│       ├── Broken               nobody answers, or what comes is not TLS or HTTP
│       ├── NotTaken             a webhook did not answer with a status of success in time
│       ├── Encoded              a content encoding that was not asked for
│       └── TooLong              more bytes than are due
├── BeaconError                  protocol.beacon: a key, secret, round or signature that its scheme does not have
│   ├── NetworkError             no network of that name, or a table that does not have its form
│   ├── NoSuchRound              a time before the first round, or a number that no round has
│   └── NoRelay                  no relay gave a valid signature of the round (exit code 1)
├── NoKernel                     protocol.numerics: no kernel gives the right bits on this machine
├── SelfCheckError               protocol.numerics: this machine computes other bits
├── CommitmentError              protocol.commitments
│   ├── ProofError               a proof, or a question about a tree, that does not fit its size or root
│   ├── BlobError                a stored blob
│   │   ├── MissingBlob          no blob of that id
│   │   ├── CorruptBlob          bytes that do not hash to the id
│   │   ├── BlobTooLarge         more bytes than the limit
│   │   └── TooManyMaps          a large one, but no memory map is left
│   ├── CheckpointError          a manifest or tensor that is not a well-formed checkpoint
│   └── DigestError              a salt, thinning, chunk or number that no digest has
├── ProgramError                 protocol.program
│   ├── EncodingError            bytes that are not program, instruction or type
│   ├── RuleError                operands, results or attributes that a primitive does not take
│   ├── CheckError               a program that `check` refuses
│   ├── ValueMismatch            tensors that do not fit the program they were given to
│   └── ParallelError            several processes that run one step
│       ├── TooManyProcesses     more processes than units: some would have nothing to do
│       ├── PartnerLost          a process of the group does not answer any more
│       └── RanksDisagree        processes that must hold one state hold several
├── CaptureError                 a training step that cannot become a program
│   └── TraceError               the submitter's code cannot be traced
├── LanesError                   protocol.lanes: a step or numbers that no lanes can be made of
│   ├── MembershipError          a table of who counts when that contradicts itself
│   └── ScheduleError            links, speeds or widths of lanes that no schedule can be made of
├── LoadError                    protocol.capture: a trained state that does not fit a model
├── TermsError                   protocol.tasks: terms that no market takes
├── StakeError                   protocol.tasks: no stake makes cheating unprofitable
├── BundleError                  protocol.tasks
│   ├── BundleRefused            an address that the operator does not allow
│   ├── BundleUnavailable        nothing, or not in time, at the address (exit code 1)
│   │   ├── NoRoomYet            other bundles that are being fetched take the disk
│   │   ├── NoMapsYet            other bundles in memory take the memory maps
│   │   └── WrongFile            other bytes than the hash names, or more of them
│   ├── BundleTooLarge           more bytes, tensors, programs or operations than the limits
│   │   └── TensorsTooLarge      its tensors, as its hash says
│   ├── BundleMalformed          a manifest or program that breaks the format, or `check`
│   └── BundleMismatch           data that are not what the manifest, or the terms, say
├── ExchangeError                protocol.exchange: what lanes say to each other, or are given, does not fit
│   ├── JobError                 a job's folder or a file of its members without its form
│   └── MessageError             an announcement or a message that is refused
│       ├── Divergence           a lane has announced other shared parameters than another
│       └── Equivocation         a lane has signed two different states of one round
├── MeasuredError                protocol.execution: the file of measured speeds is not one
├── DeviceError                  protocol.execution: the device asked for cannot be used
├── WorkersError                 protocol.execution: worker processes
│   ├── TooLittleMemory          free memory does not hold so many; none was started
│   ├── WorkerLost               one ended, or could not go on (Retryable)
│   └── WorkerFailed             one found that this machine computes wrong bits
├── ChainError                   protocol.chain
│   ├── RpcError                 the node did not answer the question (exit code 1)
│   │   ├── RpcUnavailable       nobody answers at the URL
│   │   └── RpcRefused           the node answered with its own error
│   ├── WrongChain               another chain id than the deployment's
│   │   └── ChainReset           the same id, and another first block: a development chain restarted
│   ├── ChainTableError          a table of chains that does not have the form of chains.toml
│   ├── UnsuitableChain          the chain lacks something that the contracts need
│   ├── DeploymentError          no, an unreadable or a stale deployment file
│   ├── ArtifactMissing          a contract was not compiled
│   ├── AccountError             no such account, wrong password, a development key on a real chain
│   │   ├── NoTerminal           a password or key would have to be asked for, without a terminal
│   │   └── AccountInUse         another process sends from this account (exit code 1)
│   ├── TransactionError         a transaction that was not sent, or did not do what it was sent for
│   │   ├── InsufficientFunds    the account cannot pay for the gas
│   │   ├── Reverted             a contract refused; `name` and `arguments` of its error
│   │   ├── NotMined             no receipt in time; the transaction stays in the journal (exit code 1)
│   │   └── NonceTaken           another transaction used the nonce (exit code 1)
│   ├── JournalError             the journal file is damaged or of another version
│   ├── UnstableChain            re-organisations faster than they can be read (exit code 1)
│   └── DevnetError              the development chain could not be started
│       ├── AnvilMissing         no anvil program
│       └── PortInUse            another server listens there (exit code 1)
├── NoRecommendation             protocol.tasks: no amounts suit the task and the deployment
├── UnknownArithmetic            protocol.tasks: a version that this release does not compute
├── ParametersError              protocol.chain: parameters of a deployment that do not fit
├── HomeError                    protocol.node: a home folder that cannot be used
├── SettingsError                protocol.node: a setting that is unknown, or whose value does not fit
├── DatabaseError                protocol.node: a damaged database, or one of another version, chain or account
├── NotEnoughTokens              protocol.node: the stake, a bond or the escrow cannot be locked
├── NotEnoughCoin                protocol.node: a game at its longest could not be paid for
├── BadAddress                   protocol.node: not an http or https address of host, port and path
├── NoSuchHost                   protocol.node: a server's host that is not this machine's
├── NotPublic                    protocol.node: an address that leads nobody on another machine here
├── OutOfReach                   protocol.node: a stranger's address that leads where nobody is asked
├── SolverError                  solver
│   ├── StakeSlashed             the chain has slashed the solver's stake (exit code 3)
│   ├── RunStoreError            a task's kept run has a hole that replay cannot close
│   ├── PublicPlaceError         a bucket that is not written, or that the world does not read (exit code 1)
│   ├── KeepingError             a checkpoint cannot be written (exit code 1)
│   ├── OrdersError              what the operator told the node cannot be read or written
│   ├── ControlError             the control socket cannot be used, or the node refuses what is asked
│   │   └── NotRunning           no node of the home folder runs (exit code 1)
│   ├── LaneRunning              another process runs this lane in the home folder (exit code 1)
│   └── AnotherNode              another node of the home folder runs (exit code 1)
├── VerifierError                verifier
│   ├── StateLost                a state that a challenge needs is gone
│   ├── Unserved                 the solver does not serve what it has committed to
│   ├── DiskFull             too little of the disk is free to fetch or keep more (exit code 1)
│   ├── TwoDigests               a second, different digest for a seat that was attested already
│   ├── TwoReplays               two replays of one segment that end in different states
│   └── SaltRefused              a salt that fits no seat of somebody else, or not what it attested
│       └── TooManySalts         more than are kept for one seat (exit code 1)
├── SubmitterError               assay
│   ├── DescriptionError         the file that describes a task
│   ├── SourceError              the Python file that builds it, or what that returned
│   ├── StartError               a state that training cannot go on from
│   ├── PlanError                an argument of `assay.train` that no task can have
│   ├── DataError                training data that are not arrays of numbers
│   ├── PackageMissing           a package that something optional needs is not installed
│   ├── NotServed                the bundle is not where the terms would say (exit code 1)
│   ├── TooFewVerifiers          too few registered accounts would take a seat (exit code 1)
│   ├── NobodyTakes              a solver with default settings would not bid on these terms
│   ├── NotConfirmed             nobody said that the task is to be posted
│   ├── NotMade                  a folder for a new task or job that is not new, has no name, or cannot be made
│   ├── NotCancelled             a task that is not yours, has a bid, or takes none any more
│   ├── MetricsError             metrics that are not served, or not those of the committed states
│   ├── ResultError              no result yet, or one that is not the committed one
│   │   └── NotHeld              nobody serves a state that was committed to (exit code 1)
│   ├── ProofError               a proof of a result
│   │   ├── ProofMalformed       no proof of a version that is read
│   │   └── ProofMismatch        a field that is not as the chain says (exit code 3)
│   └── WeightsError             a file of weights
│       ├── WeightsMalformed     no safetensors file
│       └── WeightsMismatch      tensors that are not the result's (exit code 3)
├── SimError                     sim
│   ├── ParameterError           a parameter that does not exist, or a value that is impossible
│   ├── SweepError               a sweep without points, or one that cannot be read
│   ├── ExtraMissing             a package that only studies need is not installed
│   ├── StudyError               a study or scenario that does not exist
│   ├── ResultsError             results that belong to another question, or are damaged
│   ├── Disagreement             the engine's ledger and the contracts differ (exit code 3)
│   ├── Unbalanced               the engine's ledger does not add up
│   └── EndlessGame              a replayed game that does not end
├── TheoryError                  sim: an argument that no task, verifier or bidder can have
└── StageError                   examples.demo: a process did not start, or ended too early
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
    """Fraud was found, a stake was slashed, a game was lost, or a proof, weights or a simulated ledger are
    not what the contracts say.
    """
    INTERRUPTED = 130


class AssayError(Exception):
    """An error that the operator, or for an InternalError another part of the project, can act on.
    `expected` and `got` are None if they are not given.

    The message is "what: expected E, got G; remedy" without the parts that are not given.
    """

    exit_code: ClassVar[ExitCode | None] = ExitCode.HOPELESS
    """The exit code of a command that this error ends. None: the error is a defect, reported with its
    traceback.
    """
    has_lines: ClassVar[bool] = False
    """Whether the message is a list or holds a traceback, which a command prints unchanged instead of in one line."""

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
    """The same command may work later: a node that does not answer, a port still in use."""

    exit_code = ExitCode.RETRY


class InternalError(AssayError):
    """Raised by one part of the project for another one to handle. At a command line it is a defect."""

    exit_code = None
