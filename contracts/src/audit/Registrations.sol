// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";
import {IStakeVault} from "../interfaces/IStakeVault.sol";
import {Pool} from "../libraries/Pool.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {Parameters} from "../types/Parameters.sol";
import {Offer, Registration} from "../types/Seats.sol";

/// @title The accounts that can be drawn: audit.md section 3.
abstract contract Registrations is IAuditBoard {
    using Pool for Pool.Table;

    uint40 internal constant NEVER = type(uint40).max;

    IStakeVault internal immutable VAULT;
    uint256 internal immutable STAKE_UNIT;
    uint32 private immutable UNBONDING_PERIOD;

    /// @dev Numbered from 1. Numbers are never reused, so past versions of the pool cannot name another
    /// account.
    mapping(uint256 number => Registration) internal _accounts;
    mapping(address account => uint40) private _numberOf;
    Pool.Table internal _pool;
    // ---- one slot shared with the ends of the queue, in Draws
    /// @inheritdoc IAuditBoard
    uint32 public registered;
    uint40 private _newest;

    constructor(IStakeVault vault, Parameters memory parameters) {
        VAULT = vault;
        (STAKE_UNIT, UNBONDING_PERIOD) = (parameters.stakeUnit, parameters.unbondingPeriod);
    }

    /// @inheritdoc IAuditBoard
    function register(uint8 level, Offer calldata offer) external {
        if (_numberOf[msg.sender] != 0) revert Refusals.AlreadyRegistered(msg.sender);
        if (level >= Pool.LEVELS) revert Refusals.OutOfBounds("level", 0, Pool.LEVELS - 1, level);
        uint40 number = ++_newest;
        ++registered;
        _numberOf[msg.sender] = number;
        _accounts[number] = Registration({
            account: msg.sender,
            resignedAt: 0,
            freeSince: uint40(block.timestamp),
            level: level,
            suspended: false,
            offer: offer,
            lock: uint48(VAULT.lock(msg.sender, STAKE_UNIT << level))
        });
        _pool.take(number, level);
        emit Registered(msg.sender, level, offer);
    }

    /// @inheritdoc IAuditBoard
    function resign() external {
        (uint40 number, Registration storage registration) = _registration();
        if (registration.resignedAt != 0) revert Refusals.NotRegistered(msg.sender);
        registration.resignedAt = uint40(block.timestamp);
        --registered;
        _pool.vacate(number, registration.level);
        emit Resigned(msg.sender, _until(UNBONDING_PERIOD));
    }

    /// @inheritdoc IAuditBoard
    function quit() external {
        (, Registration storage registration) = _registration();
        uint64 resignedAt = registration.resignedAt;
        if (resignedAt == 0) revert Refusals.NotResigned(msg.sender);
        uint64 until = resignedAt + UNBONDING_PERIOD;
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        if (registration.freeSince == NEVER && !registration.suspended) revert Refusals.HasSeat(msg.sender);
        // Never drawn again, even by a draw that was requested before it resigned and is not yet executed.
        // Its address stays, because its seats may still have to be paid.
        (registration.freeSince, registration.suspended) = (NEVER, false);
        delete _numberOf[msg.sender];
        VAULT.release(registration.lock, type(uint256).max);
        emit Left(msg.sender);
    }

    /// @inheritdoc IAuditBoard
    function resume() external {
        (, Registration storage registration) = _registration();
        if (!registration.suspended) revert Refusals.NotSuspended(msg.sender);
        VAULT.release(registration.lock, type(uint256).max);
        registration.lock = uint48(VAULT.lock(msg.sender, STAKE_UNIT << registration.level));
        (registration.suspended, registration.freeSince) = (false, uint40(block.timestamp));
        emit Resumed(msg.sender);
    }

    /// @inheritdoc IAuditBoard
    function registrationOf(address account) external view returns (Registration memory) {
        return _accounts[_numberOf[account]];
    }

    /// @dev The caller's registration.
    function _registration() private view returns (uint40 number, Registration storage registration) {
        number = _numberOf[msg.sender];
        if (number == 0) revert Refusals.NotRegistered(msg.sender);
        registration = _accounts[number];
    }

    function _until(uint256 period) internal view returns (uint64) {
        return uint64(block.timestamp + period);
    }
}
