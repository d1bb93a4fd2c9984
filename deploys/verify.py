"""pyinfra -y inventories/example.py deploys/verify.py"""

from gpuready.node import verify

verify()
