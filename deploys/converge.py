"""pyinfra -y inventories/example.py deploys/converge.py"""

from gpuready.pyinfra import converge

converge()
