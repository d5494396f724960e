// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title Open descending bids with a soft close (libraries/Bids.sol); replays tests/vectors/bids.json.
contract SoftCloseTest is Deployment {
    string private constant FILE = "tests/vectors/bids.json";
    uint64 private constant EXTENSION = 20;

    TaskId private task;

    function setUp() public override {
        super.setUp();
        task = _post();
    }

    // ------------------------------------------------------------------ the least undercut

    function test_undercut_vectors_succeeds() public view {
        string memory json = vm.readFile(FILE);
        uint256[] memory bests = _column(json, ".undercuts.best");
        uint256[] memory overtimes = _column(json, ".undercuts.overtime");
        uint256[] memory extensions = _column(json, ".undercuts.extension");
        uint256[] memory undercuts = _column(json, ".undercuts.undercut");
        assertEq(bests.length, 1_084);
        for (uint256 i; i < bests.length; ++i) {
            assertEq(Bids.undercut(uint128(bests[i]), overtimes[i], extensions[i]), undercuts[i]);
        }
    }

    function testFuzz_undercut_leavesItsShare_succeeds(uint128 best, uint64 overtime, uint32 extension)
        public
        pure
    {
        extension = uint32(bound(extension, 1, type(uint32).max));
        uint256 undercut = Bids.undercut(best, overtime, extension);
        uint256 whole = overtime / extension;
        uint256 percent = whole >= 5 ? 64 : 2 ** (whole + 1);
        assertGe(undercut * 100, uint256(best) * percent);
        if (undercut > 1) assertLt((undercut - 1) * 100, uint256(best) * percent);
        assertGe(undercut, 1);
        assertGe(Bids.undercut(best, uint256(overtime) + 1, extension), undercut);
    }

    function testFuzz_bid_leastUndercut_succeeds(uint128 first, uint8 level) public {
        first = uint128(bound(first, 0, BUDGET));
        for (uint256 i = level % 8; i > 0; --i) {
            _prolong();
        }
        ITaskMarket.Task memory entry = market.taskOf(task);
        if (entry.bidder == address(0)) {
            _bid(rival, first);
            entry = market.taskOf(task);
        }
        uint256 undercut = Bids.undercut(entry.price, entry.overtime, EXTENSION);
        if (undercut <= entry.price) {
            uint128 most = entry.price - uint128(undercut);
            _expectTooHigh(entry.price, undercut, most + 1);
            _bid(solver, most + 1);
            _bid(solver, most);
            assertEq(market.taskOf(task).price, most);
        } else {
            _expectTooHigh(entry.price, undercut, 0);
            _bid(solver, 0);
        }
    }

    function testFuzz_bid_notLower_reverts(uint128 first, uint128 second) public {
        first = uint128(bound(first, 0, BUDGET));
        second = uint128(bound(second, first, BUDGET));
        _bid(rival, first);
        _expectTooHigh(first, Bids.undercut(first, 0, EXTENSION), second);
        _bid(solver, second);
    }

    function test_bid_ofNothing_endsIt_reverts() public {
        _bid(rival, 0);
        _expectTooHigh(0, 1, 0);
        _bid(solver, 0);
    }

    // ------------------------------------------------------------------ the end of bidding

    function testFuzz_bid_endsAnExtensionLaterAtLeast_succeeds(uint64 early) public {
        uint64 until = market.taskOf(task).bidsUntil;
        early = uint64(bound(early, 0, 100));
        vm.warp(until - early);
        uint64 end = early < EXTENSION ? until - early + EXTENSION : until;
        vm.expectEmit();
        emit ITaskMarket.BidPlaced(task, solver, BUDGET, end);
        _bid(solver, BUDGET);
        assertEq(market.taskOf(task).bidsUntil, end);
        assertEq(market.taskOf(task).overtime, end - until);
    }

    function test_bid_prolongsTraining_succeeds() public {
        uint64 until = market.taskOf(task).bidsUntil;
        vm.warp(until);
        _bid(solver, BUDGET);
        vm.warp(until + EXTENSION);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.TooEarly.selector, until + EXTENSION, until + EXTENSION)
        );
        market.assign(task);
        vm.warp(until + EXTENSION + 1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.TooLate.selector, until + EXTENSION, until + EXTENSION + 1)
        );
        _bid(rival, 0);
        market.assign(task);
        assertEq(market.taskOf(task).trainUntil, until + EXTENSION + _terms().trainingPeriod);
    }

    /// @dev A bid in the last second gains nothing from being late: the beaten bidder has a whole extension
    /// to answer.
    function test_bid_sniped_isAnswered_succeeds() public {
        _bid(solver, 90 * UNIT);
        vm.warp(market.taskOf(task).bidsUntil);
        _bid(rival, 80 * UNIT);
        vm.warp(market.taskOf(task).bidsUntil);
        _expectTooHigh(80 * UNIT, 32 * UNIT / 10, 768 * UNIT / 10 + 1);
        _bid(solver, 768 * UNIT / 10 + 1);
        _bid(solver, 768 * UNIT / 10);
        assertEq(market.taskOf(task).bidder, solver);
    }

    /// @dev Two accounts that underbid each other in every second cannot raise the undercut before an
    /// extension has passed.
    function test_bid_shills_doNotRaiseTheUndercut_succeeds() public {
        vm.warp(market.taskOf(task).bidsUntil - EXTENSION);
        uint128 best = BUDGET;
        _bid(rival, best);
        for (uint64 i = 1; i < EXTENSION; ++i) {
            vm.warp(vm.getBlockTimestamp() + 1);
            best -= uint128(Bids.undercut(best, 0, EXTENSION));
            _bid(i % 2 == 0 ? rival : _fundedChallenger(), best);
            assertEq(market.taskOf(task).overtime, i);
        }
        uint256 undercut = (uint256(best) * 2 + 99) / 100;
        _bid(solver, best - uint128(undercut));
    }

    /// @dev However often somebody bids, bidding ends: bids as late and as high as allowed make it longest.
    function test_bid_asLateAsCanBe_ends_succeeds() public {
        string memory json = vm.readFile(FILE);
        uint256[] memory budgets = _column(json, ".biddings.budget");
        uint256[] memory bids = _column(json, ".biddings.bids");
        assertEq(budgets.length, 8);
        for (uint256 i = 1; i < budgets.length; ++i) {
            if (budgets[i] > 1000 * UNIT) continue; // more than the submitter has
            Terms memory terms = _terms();
            terms.budget = uint128(budgets[i]);
            terms.restitution = 0;
            task = _post(terms);
            uint64 until = market.taskOf(task).bidsUntil;
            for (uint256 k; k < bids[i]; ++k) {
                _prolong();
            }
            ITaskMarket.Task memory entry = market.taskOf(task);
            assertEq(entry.price, 0);
            assertEq(entry.overtime, bids[i] * EXTENSION);
            assertEq(entry.bidsUntil, until + bids[i] * EXTENSION);
        }
    }

    /// @dev Random bids, many of them late: the overtime stays below the bound of libraries/Bids.sol.
    function testFuzz_bid_anyhow_ends_succeeds(uint256 seed, uint128 budget) public {
        Terms memory terms = _terms();
        terms.budget = uint128(bound(budget, 1, BUDGET));
        terms.restitution = 0;
        task = _post(terms);
        uint256 most = terms.budget;
        for (uint256 i; i < 120; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            ITaskMarket.Task memory entry = market.taskOf(task);
            if (entry.bidder != address(0)) {
                uint256 undercut = Bids.undercut(entry.price, entry.overtime, EXTENSION);
                if (undercut > entry.price) break;
                most = entry.price - undercut;
            }
            uint256 before = seed % 3 == 0 ? 0 : (seed >> 8) % (entry.bidsUntil - vm.getBlockTimestamp() + 1);
            vm.warp(entry.bidsUntil - before);
            _bid(i % 2 == 0 ? rival : solver, uint128(most - (seed >> 16) % (most / 50 + 1)));
        }
        uint256 bids = 1;
        for (uint128 best = terms.budget; best != 0; ++bids) {
            best -= uint128(Bids.undercut(best, bids, 1));
        }
        assertLt(market.taskOf(task).overtime, (bids + 1) * EXTENSION);
    }

    // ------------------------------------------------------------------ inside

    function _bid(address who, uint128 price) private {
        vm.prank(who);
        market.bid(task, price);
    }

    /// @dev Bids as much as is allowed, in the last second.
    function _prolong() private {
        ITaskMarket.Task memory entry = market.taskOf(task);
        vm.warp(entry.bidsUntil);
        uint128 most = market.termsOf(task).budget;
        if (entry.bidder != address(0)) {
            most = entry.price - uint128(Bids.undercut(entry.price, entry.overtime, EXTENSION));
        }
        _bid(rival, most);
    }

    function _fundedChallenger() private returns (address) {
        if (vault.free(challenger) == 0 && market.taskOf(task).bidder != challenger) _fund(challenger);
        return challenger;
    }

    function _expectTooHigh(uint128 best, uint256 undercut, uint128 price) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.BidTooHigh.selector, best, undercut, price));
    }

    function _column(string memory json, string memory key) private pure returns (uint256[] memory) {
        return vm.parseJsonUintArray(json, key);
    }
}
