"""The configuration of the running CRI-O: ``crio status config``, in TOML. Source: cri-o, cmd/crio."""

from typing import Any

from gpuready.base.documents import toml_values
from gpuready.base.facts import Cri, Unknown
from gpuready.base.records import Records


def crio(r: Records) -> Cri | Unknown | None:
    """Parse CRI-O's answer; None if it was not asked, or is too old for the question."""
    answer = r.run("crio_status")
    if not answer or isinstance(answer, Unknown):
        return answer or None
    try:
        own: dict[str, Any] = toml_values(answer)["crio"]["runtime"]
        return Cri(
            default_runtime=own.get("default_runtime", ""),
            runtimes={name: dict(table) for name, table in own["runtimes"].items()},
            cdi_spec_dirs=tuple(own.get("cdi_spec_dirs") or ()),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        return Unknown(unknown=f"the answer of crio status config is not understood ({type(e).__name__})")
