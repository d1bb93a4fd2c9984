"""Python wheels, such as a patched PyTorch, in environments on the node that the spec names.

pip skips a wheel if its version is installed, whatever its content. So gpuready compares contents: the hash of the
wheel with the hash that pip recorded (direct_url.json). A wheel that does not fit is refused before anything is copied.
A wheel is copied once per host, however many environments use it. If the spec names a URL, the node fetches the wheel
itself; gpuready then knows its name, tags and hash before, and nothing of its libraries. Dependencies are not installed
(``--no-deps``): the owner of the environment chooses them. If a process uses the package, replacing it mixes two builds
in that process, so that is class *recreate*.
Sources: PEP 427, PEP 610, pip's documentation on pip install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuready.base.https import LIMITS, Limits
from gpuready.base.step import Script, Step, Steps
from gpuready.components.wheels import fit, record
from gpuready.components.wheels.record import Record
from gpuready.components.wheels.spec import TorchWheel
from gpuready.components.wheels.state import Environment, Installed
from gpuready.contract.component import Applies, Change, Component, Disruption, NotComparable, Value, Values
from gpuready.inventory.secrets import resolve
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown

if TYPE_CHECKING:
    from gpuready.components.wheels.archive import Needs, Wheel

#: Limits in seconds. That for copying covers only the hash, because a transfer may last as long as bytes arrive.
_COPY, _FETCH, _INSTALL = 900, 3600, 3600
_SHORT = 16


class Wheels(Component):
    """Python wheels in environments on the node, compared by content, with a record for the probe."""

    name = "wheels"
    needs_boot = True

    def applies(self, spec: NodeSpec, state: NodeState) -> Applies:
        return Applies(bool(spec.torch_wheels), "torch_wheels" if spec.torch_wheels else "no torch_wheels in the spec")

    def expected(self, spec: NodeSpec, state: NodeState) -> Values:
        want: dict[str, Value] = {}
        for one in spec.torch_wheels:
            wheel = _wheel(one)
            right = _said(wheel)
            want[_key(one.env, one.name)] = right
            if _now(state, one.env, one.name) == right:
                want[f"{_key(one.env, one.name)}.recorded"] = True
            elif one.env in state.environments and (
                why := fit.misfit(wheel, _needs(one), state.environments[one.env], one.env)
            ):
                raise NotComparable(f"{why}; nothing was copied")
        return want

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        found: dict[str, Value] = {}
        kept = {(each.env, each.name): each for each in record.records(state)}
        for env, name in {(one.env, one.name) for one in spec.torch_wheels} | set(kept):
            now = _now(state, env, name)
            found[_key(env, name)] = now
            mine = kept.get((env, name))
            known = mine is not None and _said(mine) == now
            found[f"{_key(env, name)}.recorded"] = now if isinstance(now, Unknown) else known
        return found

    def original(self, spec: NodeSpec, state: NodeState) -> Values:
        want: dict[str, Value] = {}
        for mine in record.records(state):
            now = _now(state, mine.env, mine.name)
            if isinstance(now, Unknown) or (not mine.before and now == _said(mine)):
                want[_key(mine.env, mine.name)] = None
            want[f"{_key(mine.env, mine.name)}.recorded"] = False
        return want

    def disruption(self, diff: tuple[Change, ...], state: NodeState) -> Disruption:
        return Disruption.recreate if any(map(_replaces, diff)) else Disruption.none

    def stage(self, change: Change) -> int:
        return int(_replaces(change))

    def affected(self, diff: tuple[Change, ...], state: NodeState) -> tuple[str, ...]:
        replaced = [c.key for c in diff if _replaces(c)]
        touched = [env for env in sorted(state.environments) if any(key.startswith(_key(env, "")) for key in replaced)]
        return tuple(f"{user} in {env}" for env in touched for user in state.environments[env].users)

    def notes_on_removal(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        return tuple(
            f"{mine.name} {mine.version} stays in {mine.env}: it replaced {mine.before}, of which gpuready has no "
            "copy; install the version that you want by hand"
            for mine in record.records(state)
            if mine.before
        )

    def notes(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        found: list[str] = []
        for one in spec.torch_wheels:
            if any(c.key == _key(one.env, one.name) for c in diff):
                found += _remarks(one, state)
        return tuple(dict.fromkeys(found))

    def remarks(self, spec: NodeSpec, state: NodeState) -> tuple[str, ...]:
        named = {(one.env, one.name) for one in spec.torch_wheels}
        return tuple(
            f"{mine.name} in {mine.env} is no longer in the spec, but stays installed: gpuready remove --only wheels "
            "uninstalls all wheels of gpuready"
            for mine in record.records(state)
            if (mine.env, mine.name) not in named and _recorded_now(state, mine.env, mine.name) == _said(mine)
        )

    def restore(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        keys = {c.key for c in diff}
        for mine in record.records(state):
            key = _key(mine.env, mine.name)
            if key in keys or f"{key}.recorded" in keys:
                yield _remove(mine, uninstall=key in keys)

    def converge(self, diff: tuple[Change, ...], spec: NodeSpec, state: NodeState) -> Steps:
        want = {c.key: c for c in diff}
        wheels = {one: _wheel(one) for one in spec.torch_wheels}
        install = [one for one in spec.torch_wheels if _key(one.env, one.name) in want]
        for one in spec.torch_wheels:
            if one not in install and f"{_key(one.env, one.name)}.recorded" in want:
                yield _install(one, wheels[one], state, keep=True, pip=False)
        for file, sha256 in dict.fromkeys((one.file, wheels[one].sha256) for one in install):
            alike = [one for one in install if (one.file, wheels[one].sha256) == (file, sha256)]
            yield _bring(alike, wheels[alike[0]], [wheels[one].sha256 for one in install])
            for one in alike:
                yield _install(one, wheels[one], state, keep=one is not alike[-1], pip=True)


def asked(spec: NodeSpec, state: NodeState) -> tuple[tuple[str, dict[str, tuple[str, ...]]], ...]:
    """Return the environments to inspect, each with the names, tags, libraries and places to look for.

    An environment in its recorded state is left out, so its wheels are not unpacked. A wheel that cannot be read is
    left out, too: the comparison reports it.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for one in spec.torch_wheels:
        try:
            wheel = _wheel(one)
            if _said(wheel) == _recorded_now(state, one.env, one.name):
                continue
            needed = _needs(one)
        except NotComparable:
            continue
        into = found.setdefault(one.env, {"names": set(), "tags": set(), "libraries": set(), "places": set()})
        into["names"] |= {each.name for each in spec.torch_wheels if each.env == one.env}
        into["names"] |= {mine.name for mine in record.records(state) if mine.env == one.env}
        into["tags"] |= wheel.tags
        into["libraries"] |= set(fit.wanted(needed))
        into["places"] |= needed.places
    return tuple((env, {key: tuple(sorted(value)) for key, value in what.items()}) for env, what in found.items())


def _wheel(one: TorchWheel) -> Wheel:
    from gpuready.components.wheels import archive  # slow to import: only if the spec names a wheel

    return archive.named(one.file, one.sha256) if one.sha256 else archive.read(one.wheel)


def _needs(one: TorchWheel) -> Needs:
    from gpuready.components.wheels import archive

    return archive.Needs() if one.sha256 else archive.needs(one.wheel)


def _key(env: str, name: str) -> str:
    return f"wheels.{env}.{name}"


def _said(there: Installed | Record | Wheel) -> str:
    """Return a distribution as a diff shows it. Builds of one version differ only in their hash."""
    origin = f"sha256 {there.sha256[:_SHORT]}" if there.sha256 else "hash not recorded by pip"
    return f"{there.version}, {origin}"


def _recorded_now(state: NodeState, env: str, name: str) -> Value:
    """Return what the probe found for a recorded wheel."""
    if isinstance(state.wheels, Unknown):
        return state.wheels
    mine = record.find(state, env, name)
    there = state.wheels.get(mine.info) if mine else None
    return _said(Installed(version=mine.version, sha256=there)) if mine and there else None


def _now(state: NodeState, env: str, name: str) -> Value:
    seen = state.environments.get(env)
    if seen is None:
        known = _recorded_now(state, env, name)
        on_record = any(mine.env == env for mine in record.records(state))
        return known if known is not None or on_record else Unknown(unknown=f"{env} was not inspected")
    if seen.trouble:
        return None
    there = seen.installed.get(name)
    return _said(there) if there else None


def _replaces(change: Change) -> bool:
    return isinstance(change.actual, str)


def _remarks(one: TorchWheel, state: NodeState) -> list[str]:
    """Return notes on a wheel that is about to be installed."""
    wheel, found = _wheel(one), []
    there = (state.environments.get(one.env) or Environment()).installed.get(one.name)
    if there and there.version == wheel.version:
        found.append(f"{one.name} {wheel.version} in {one.env} is another build of that version: pip would skip it")
    if one.sha256:
        found.append(
            f"{one.file} is on a server, so the libraries that it needs (glibc, CUDA) are not compared with those of "
            f"{one.env}; the check wheels.works loads it"
        )
    if wheel.requires:
        found.append(f"dependencies of {one.name} are not installed; the check wheels.works lists missing ones")
    if why := fit.driver_too_old(_needs(one).cuda, state):
        found.append(f"{one.file} {why}")
    return found


class Arriving(Script):
    """A wheel arrives in ``folder``, and pip then needs room in ``dirs``.

    Other wheels in ``folder`` are removed, except those whose hash is in ``hold``.
    """

    file: str
    sha256: str
    dirs: tuple[str, ...]
    hold: tuple[str, ...]
    folder: str


class CopyWheel(Arriving, template="wheels/copy"):
    """Receive a wheel with this hash and ``size`` (bytes). It needs ``unpacked`` MiB in each of ``dirs``."""

    size: int
    unpacked: int


class FetchWheel(Arriving, template="wheels/fetch"):
    """Fetch a wheel within ``limit`` seconds. ``header``: a line for the server, or empty; it is a secret."""

    url: str
    header: str
    limit: int
    limits: Limits = LIMITS


class InstallWheel(Script, template="wheels/install"):
    """Install a copied wheel (if ``pip``) and record it. ``replaces``: it replaces another version.

    ``keep``: the copy stays. ``places``: of them, one has pip's directory about the distribution ``dist``. ``record``:
    the path of gpuready's record, which has that directory and then ``said``.
    """

    env: str
    dist: str
    file: str
    sha256: str
    places: tuple[str, ...]
    pip: bool
    replaces: bool
    keep: bool
    record: str
    said: str


class RemoveWheel(Script, template="wheels/remove"):
    """Forget that gpuready installed a wheel; if ``uninstall``, have pip uninstall it first."""

    env: str
    dist: str
    uninstall: bool
    record: str


def _bring(entries: list[TorchWheel], wheel: Wheel, hold: list[str]) -> Step:
    first = entries[0]
    arriving = (first.file, wheel.sha256, tuple(one.env for one in entries), tuple(hold), record.WHEELS)
    if first.sha256:
        header = resolve(first.header).reveal() if first.header else ""
        return Step(
            "wheel-fetch",
            FetchWheel(*arriving, first.wheel, header, _FETCH),
            timeout=_FETCH + _COPY,
            summary=f"fetch {first.wheel}",
            fixes=(
                ("cannot fetch", f"find the cause on the node: curl -fIL {first.wheel}; then run again"),
                (f"{first.wheel} has the", "put the wheel that you built there, or correct sha256 in the spec"),
            ),
        )
    return Step(
        "wheel-copy",
        CopyWheel(*arriving, wheel.size, wheel.unpacked >> 20),
        timeout=_COPY,
        survives=False,
        alters=True,
        summary=f"copy {first.file} ({wheel.size / 2**20:.1f} MiB)",
        sends=first.wheel,
    )


def _install(one: TorchWheel, wheel: Wheel, state: NodeState, *, keep: bool, pip: bool) -> Step:
    env = state.environments[one.env]
    there = env.installed.get(one.name)
    kept = record.find(state, one.env, one.name)
    before = kept.before if kept else there.version if there else ""
    script = InstallWheel(
        env=one.env,
        dist=one.name,
        file=f"{record.WHEELS}/{wheel.sha256}/{one.file}",
        sha256=wheel.sha256,
        places=tuple(sorted({env.purelib, env.platlib})),
        pip=pip,
        replaces=pip and there is not None,
        keep=keep,
        record=record.path(one.env, one.name),
        said=Record("", one.env, one.name, wheel.version, wheel.sha256, before).said,
    )
    summary = f"install {one.name} {wheel.version} into {one.env}" if pip else f"record {one.name} in {one.env}"
    return Step("wheel-install", script, timeout=_INSTALL, summary=summary)


def _remove(mine: Record, *, uninstall: bool) -> Step:
    script = RemoveWheel(mine.env, mine.name, uninstall, record.path(mine.env, mine.name))
    what = f"uninstall {mine.name} from {mine.env}" if uninstall else f"forget {mine.name} in {mine.env}"
    return Step("wheel-remove", script, timeout=_INSTALL, summary=what)
