"""What PyTorch does with an error of NCCL, which is up to one variable of the job's environment.

Sources: PyTorch's documentation (torch_nccl_environment_variables); the variable lost its old name with 2.2.
"""

from __future__ import annotations

VARIABLE = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
OLD_NAME = "NCCL_ASYNC_ERROR_HANDLING"
DEFAULT = "3"
#: Each value and what becomes of a job whose peer is lost.
VALUES = {
    "0": "nothing is done, and the other ranks hang",
    "1": "the communicator is aborted and the process ends",
    "2": "the communicator is aborted and the process goes on",
    "3": "the process ends, and the communicator is not aborted first (the default)",
}
