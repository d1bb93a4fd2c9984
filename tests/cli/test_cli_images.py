"""Images of this machine's Docker and of registries, where there is one; else the words that say so."""

import shutil
from pathlib import Path

import pytest

from gpuready.base.errors import UsageError
from gpuready.compat.answer import answers
from gpuready.compat.layers import ImageError
from gpuready.cuda.facts import CompatLib, Host
from gpuready.cuda.tables import gpu
from gpuready.verbs.compat.images import is_here, read_image, registry_image
from tests.compat.imagefiles import layer, oci, write_directory


def test_what_is_read_where(tmp_path: Path) -> None:
    assert is_here("docker://nvcr.io/nvidia/cuda:12.4.1-base")
    assert is_here(str(tmp_path))
    assert not is_here("nvidia/cuda:12.4.1-base")


def test_an_image_that_this_machine_has_not() -> None:
    with pytest.raises(UsageError) as caught:
        read_image("gpuready.invalid/not-here:1", None)
    told = str(caught.value)
    assert "no container engine runs on this node" in told or "), and it is not pulled unasked" in told
    assert "docker://HOST/NAME:TAG" in caught.value.remedy


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="no skopeo")
def test_a_configuration_by_skopeo(tmp_path: Path) -> None:
    env = {"CUDA_VERSION": "12.9.1", "NV_CUDA_COMPAT_PACKAGE": "cuda-compat-12-9=575.57.08-1"}
    write_directory(tmp_path, oci(env, [layer({"etc/x": b""})]))
    found = registry_image(f"oci:{tmp_path}", None)
    assert found.image is not None
    assert (found.image.cuda, found.image.compat, found.sure) == ((12, 9, 1), (CompatLib((575, 57, 8)),), False)
    assert "concluded from NV_CUDA_COMPAT_PACKAGE" in found.notes[0]
    (told,) = answers([Host((570, 26), gpu("NVIDIA H100"))], "", {"x": found})
    assert told.word == "FORWARD?"
    write_directory(tmp_path / "bare", oci({"CUDA_VERSION": "12.9.1"}, []))
    bare = registry_image(f"oci:{tmp_path / 'bare'}", None)
    assert bare.image is not None
    assert (bare.image.compat, bare.notes) == ((), ("its layers were not read",))
    with pytest.raises(ImageError, match="skopeo: "):
        registry_image("docker://127.0.0.1:1/app:1", None)
