"""Whose the toolkit is, by each mark that its owner leaves on a node. The words of the spec are in owners.yaml."""

from typing import Any

import pytest

from gpuready.components.toolkit.component import Toolkit
from gpuready.contract.compare import compare
from tests.components.cases import node_of

OPERATOR = "/usr/local/nvidia/toolkit"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
HAS = {"nvidia-container-toolkit": "1.17.8-1"}


@pytest.mark.parametrize(
    ("state", "owner"),
    [
        ({"marks": ["operator_toolkit"]}, f"the GPU Operator owns the toolkit here ({OPERATOR}): observed only"),
        (
            {"docker": {"runtimes": {"nvidia": f"{OPERATOR}/nvidia-container-runtime"}}},
            f"the GPU Operator owns the toolkit here (Docker runs {OPERATOR})",
        ),
        ({"files": {DROP_IN: f'BinaryName = "{OPERATOR}/nvidia-ctk"'}}, f"({DROP_IN} names {OPERATOR})"),
        ({"marks": ["operator"]}, "the GPU Operator owns the toolkit here (/run/nvidia/validations)"),
        ({"marks": ["dlami"], "packages": HAS}, "the AWS Deep Learning AMI owns the toolkit here (/opt/aws/dlami)"),
        ({"marks": ["dlvm"], "packages": HAS}, "the Google Deep Learning VM image owns the toolkit here (/opt/deep"),
        ({"marks": ["dgx"], "packages": HAS}, "DGX OS owns the toolkit here (/etc/dgx-release)"),
        ({"os": {"id": "cos"}}, "Container-Optimized OS owns the toolkit here (ID=cos in os-release)"),
        ({"os": {"id": "bottlerocket"}}, "Bottlerocket owns the toolkit here"),
        ({"os": {"id": "flatcar"}}, "Flatcar owns the toolkit here"),
        ({"marks": ["ostree"]}, "the ostree image owns the toolkit here (/run/ostree-booted)"),
    ],
)
def test_the_owner_by_its_mark(state: dict[str, Any], owner: str) -> None:
    found = compare(Toolkit(), *node_of("toolkit", {}, state))
    assert not found.applies and owner in found.reason
