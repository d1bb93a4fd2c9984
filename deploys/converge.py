"""pyinfra -y inventories/example.py deploys/converge.py"""

from gpuready.node import converge

converge()
