"""pyinfra -y inventories/example.py deploys/verify.py"""

from gpuready.operations.door import verify

verify()
