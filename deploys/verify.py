"""pyinfra -y inventories/example.py deploys/verify.py"""

from gpuready.pyinfra import verify

verify()
