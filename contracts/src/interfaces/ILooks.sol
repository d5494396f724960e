// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";

/// @title Informing: whoever shows the salt of an attested seat has half of the seat's lock (dispute.md section 3).
/// @notice A salt is as good as the lock: so nobody can have others compute a digest without trusting them with it.
interface ILooks {
    /// @notice The informer showed the salt of the seat's account, which is suspended; the seat is empty. It got `paid`.
    event Informed(
        TaskId indexed task, uint256 indexed seat, address indexed account, address informer, uint256 paid
    );

    /// @notice The caller will inform in a later block, so that nobody can copy a salt out of a transaction that waits.
    /// @param commitment keccak256(abi.encode(chain id, this contract, task, seat, caller, salt)).
    function commitInforming(bytes32 commitment) external;

    /// @notice Who has committed to it in an earlier block: "this is the seat's salt". Takes half of the seat's lock (`IAuditBoard.caught`)
    /// while the task is Submitted.
    /// @param digest That the seat attested. @param salt Whose hash it attested.
    function inform(TaskId task, uint256 seat, bytes32 digest, bytes32 salt) external;

    /// @notice The block in which the account committed to inform; 0 if it has not, or has informed.
    function committedIn(address informer, bytes32 commitment) external view returns (uint256);
}
