"""pyinfra -y inventories/example.py deploys/converge.py"""

from gpuready.operations.door import converge

converge()
