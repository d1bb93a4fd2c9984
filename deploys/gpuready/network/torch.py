"""What PyTorch does after an NCCL error. One environment variable of the job decides.

Sources: PyTorch's documentation (torch_nccl_environment_variables); pytorch/pytorch#114077: since
2.2, the old name is deprecated, but still read. Looked up on 2026-11-23.
"""

VARIABLE = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
OLD_NAME = "NCCL_ASYNC_ERROR_HANDLING"
DEFAULT = "3"
#: Value -> what happens to a job that loses a peer.
VALUES = {
    "0": "nothing is done, and the other ranks hang",
    "1": "the communicator is aborted and the process ends",
    "2": "the communicator is aborted and the process goes on",
    "3": "the process ends, and the communicator is not aborted first (the default)",
}
