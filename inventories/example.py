"""For plain pyinfra: pyinfra -y inventories/example.py deploys/converge.py"""

from pathlib import Path

from gpuready.pyinfra import hosts as load_hosts

hosts = load_hosts(Path(__file__).parent / "example.yaml")
