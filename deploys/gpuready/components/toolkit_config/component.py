"""The toolkit's config.toml: the runtime's mode, the CUDA compatibility libraries, and a switch for hardening.

``nvidia-ctk config --set`` checks no values, drops all comments and sorts the file. So gpuready changes only its own
keys in the user's document. Before it installs the result, the node's nvidia-ctk must be able to read it. The file is
read again just before the change, because the toolkit's package may have created it. Runtime and hook read it whenever
a container is created, so nothing has to restart.
Sources: api/config/v1 and cmd/nvidia-ctk/config of the NVIDIA container toolkit, its changelog, its documentation.
"""

import base64
import hashlib

from gpuready.base import toml_document
from gpuready.base.errors import ConvergeError
from gpuready.base.step import Script, Step, Steps
from gpuready.base.toml_document import TomlError
from gpuready.components.toolkit_config import state as toolkit_config
from gpuready.components.toolkit_config.state import BY_ITSELF, COMPAT, CONFIG, ENVVAR, MODE, VOLUMES
from gpuready.contract import ledger, owned_keys
from gpuready.contract.component import (
    Applies,
    Change,
    Component,
    NotComparable,
    Value,
    Values,
    refuse_irregular,
    unusable,
)
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState

#: The record of what gpuready wrote into config.toml.
OURS = "/var/lib/gpuready/config.ours"
HARDENED: dict[str, Value] = {ENVVAR: False, VOLUMES: True}


class Config(Component):
    """toolkit.mode, toolkit.cuda_compat_mode and toolkit.hardened in config.toml."""

    name = "config"
    owned_as = "toolkit"
    requires = ("toolkit",)

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        if not _wanted(spec):
            return Applies(False, "the spec has no toolkit.mode, toolkit.cuda_compat_mode or toolkit.hardened")
        return Applies(True, "the spec says how containers get their GPUs")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        refuse_irregular(CONFIG, state)
        owned_keys.read(state, OURS)  # without a readable record, nothing could be undone
        try:
            want, document = _wanted(spec), toml_document.read(state.text(CONFIG))
            toolkit_config.merge(state.text(CONFIG), want)
        except TomlError as e:
            raise unusable(CONFIG, e, e.by_hand) from None
        absent = {
            key for key in want if toolkit_config.given(document, key) is None
        }  # its default may be what is wanted
        return {f"config.{k}": None if k in absent and v == BY_ITSELF[k] else v for k, v in want.items()}

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        try:
            document = toml_document.read(state.text(CONFIG))
        except TomlError:
            return {}
        return {f"config.{key}": toolkit_config.given(document, key) for key in BY_ITSELF}

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        record = owned_keys.read(state, OURS).get(CONFIG)
        if not record:
            return {}
        try:
            now, before = (toml_document.read(text) for text in (state.text(CONFIG), _kept(state)))
        except TomlError as e:
            raise NotComparable(f"{CONFIG}: {e}; fix it by hand; gpuready's keys are still in it") from None
        ours = [key for key, values in record.items() if toolkit_config.given(now, key) in values]
        return {f"config.{key}": toolkit_config.given(before, key) for key in ours}

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        if any(c.key == f"config.{ENVVAR}" and c.expected is False for c in diff):
            return (
                "hardened: in new containers NVIDIA_VISIBLE_DEVICES counts only where they are privileged; "
                "others get GPUs as CDI devices (--device nvidia.com/gpu=all) or by a mount of /dev/null below "
                "/var/run/nvidia-container-devices, and docker run --gpus works only where Docker does it by CDI; "
                "Kubernetes' device plugin needs a list strategy of volume-mounts or cdi",
            )
        return ()

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        values = {c.key.removeprefix("config."): c.expected for c in diff}
        reply = yield Step("config-read", ConfigRead(), survives=False, summary="read config.toml")
        data = base64.b64decode(reply.out)
        try:
            text = data.decode()
            merged = toolkit_config.merge(text, values)
        except (TomlError, UnicodeDecodeError) as e:
            by_hand = e.by_hand if isinstance(e, TomlError) else ""
            raise ConvergeError(f"{CONFIG}: {e}; it was not touched{by_hand}") from None
        before = toml_document.read(_kept(state) if ledger.kept(state, CONFIG) else text)
        record = owned_keys.read(state, OURS)
        last = {k: v for k, v in record.get(CONFIG, {}).items() if k not in values}
        ours = {k: v for k, v in values.items() if v not in (None, toolkit_config.given(before, k))}
        texts = owned_keys.texts(record, CONFIG, last, ours)
        sha256 = hashlib.sha256(data).hexdigest() if data else "absent"
        yield Step("config", ConfigInstall(sha256, merged, texts.between, texts.after), summary="install config.toml")


class ConfigRead(Script, template="toolkit_config/read"):
    """Print config.toml in base64."""

    path: str = CONFIG


class ConfigInstall(Script, template="toolkit_config/converge"):
    """Write config.toml if nvidia-ctk can read it, and the record for during (``between``) and ``after`` the change."""

    before: str
    content: str
    between: str
    after: str
    path: str = CONFIG
    ours: str = OURS


def _wanted(spec: NodeSpec) -> dict[str, Value]:
    toolkit = spec.toolkit
    given = {MODE: toolkit.mode, COMPAT: toolkit.cuda_compat_mode}
    want: dict[str, Value] = {key: value for key, value in given.items() if value is not None}
    if toolkit.hardened:
        want |= HARDENED
    elif "hardened" in toolkit.model_fields_set:
        want |= {key: BY_ITSELF[key] for key in HARDENED}
    return want


def _kept(state: NodeState) -> str:
    record = ledger.kept(state, CONFIG)
    return ((record.original if record else None) or b"").decode("utf-8", "surrogateescape")
