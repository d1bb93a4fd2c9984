"""The files that name the toolkit's repository to the package manager, and what they say. Pure.

Sources: sources.list(5), apt.conf(5); dnf.conf(5), curl(1) for its configuration file.
"""

import configparser
import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from gpuready.base import resources
from gpuready.components.repository import apt_sources
from gpuready.contract.component import NotComparable, Values
from gpuready.contract.package_manager import manager
from gpuready.inventory.secrets import is_reference, resolve
from gpuready.model.spec import NodeSpec
from gpuready.model.state import File, NodeState

NAME = "gpuready-nvidia-container-toolkit"


class Text(NamedTuple):
    """A file to write; None removes it. ``secret``: only root may read it."""

    path: str
    content: str | None
    secret: bool = False


class AptSource:
    """One deb822 file with Signed-By, and a file with the proxy.

    ``path``, ``keyring``: the files of the source and its key; ``lists``: what the paths of all sources begin with.
    """

    path = f"/etc/apt/sources.list.d/{NAME}.sources"
    keyring = f"/etc/apt/keyrings/{NAME}.asc"
    proxy = "/etc/apt/apt.conf.d/90gpuready-proxy"
    lists = "/etc/apt/sources.list"
    #: The fields of gpuready's stanza. Any other field is an option; Trusted and Allow-Insecure would bypass the key.
    _fields = ("Types", "Uris", "Suites", "Signed-By", "Enabled")

    def url(self, spec: NodeSpec) -> str:
        return spec.toolkit.repo.url

    def expected(self, spec: NodeSpec) -> Values:
        proxy = self.setting(spec, self.url(spec))
        return {
            "repository.uri": self.url(spec),
            "repository.suite": "/",
            "repository.signed_by": self.keyring,
            "repository.options": (),
            "repository.entries": 1,
            "repository.proxy": "(secret)" if is_secret(proxy, spec) else proxy,
        }

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        entries = apt_sources.stanzas(state.text(self.path))
        first = entries[0] if entries else {}
        on = first.get("Types") == "deb" and first.get("Enabled", "yes").lower() in ("yes", "true")
        file = state.files.get(self.proxy)
        line = file.text.strip() if file else None
        return {
            "repository.uri": first.get("Uris") if on else None,
            "repository.suite": first.get("Suites"),
            "repository.signed_by": first.get("Signed-By"),
            "repository.options": tuple(f"{k}: {v}" for k, v in sorted(first.items()) if k not in self._fields),
            "repository.entries": len(entries),
            "repository.proxy": shown(line, self.setting(spec, self.url(spec)), file, spec),
        }

    def files(self, spec: NodeSpec) -> tuple[Text, ...]:
        """Return the files to write besides the key."""
        proxy = self.setting(spec, self.url(spec))
        source = resources.document("repository/toolkit.sources", url=self.url(spec), keyring=self.keyring)
        line = None if proxy is None else f"{proxy}\n"
        return Text(self.path, source), Text(self.proxy, line, is_secret(proxy, spec))

    def without(self, path: str, text: str, spec: NodeSpec) -> str | None:
        """Return the file without its active entries for the repository; None if it has none."""
        return apt_sources.without_repository(path, text, self.url(spec))

    def setting(self, spec: NodeSpec, url: str) -> str | None:
        """Return the line that makes the proxy that of the host of ``url`` only; its downloader reads it, too."""
        if not spec.toolkit.repo.proxy:
            return None
        scheme, _, rest = url.partition("://")
        host = rest.split("/")[0].split(":")[0]
        return f'Acquire::{scheme}::Proxy::{host} "{resolve(spec.toolkit.repo.proxy).reveal()}";'


class DnfSource(AptSource):
    """One .repo file with its proxy. Both signatures are checked: that of the metadata and that of each package."""

    path = f"/etc/yum.repos.d/{NAME}.repo"
    keyring = f"/etc/pki/rpm-gpg/{NAME}.asc"
    proxy = path
    lists = "/etc/yum.repos.d/"
    _options = ("proxy", "proxy_username", "proxy_password")

    def url(self, spec: NodeSpec) -> str:
        return spec.toolkit.repo.rpm_url

    def expected(self, spec: NodeSpec) -> Values:
        proxy = self._proxy(spec)
        values = [line.partition("=")[2] for line in (proxy or "").split("\n")]
        # dnf puts variables in, takes spaces off the ends, and None for nothing.
        if any(re.search(r"[$\\]|^\s|\s$|^(_?none_?)$", v, re.IGNORECASE) or not v.isprintable() for v in values):
            raise NotComparable(
                "toolkit.repo.proxy: dnf cannot use a user or password with $, a backslash, control characters, or "
                "spaces at the ends, nor the word None"
            )
        return {
            "repository.uri": self.url(spec),
            "repository.signed_by": f"file://{self.keyring}",
            "repository.gpgcheck": "1",
            "repository.repo_gpgcheck": "1",
            "repository.options": (),
            "repository.entries": 1,
            "repository.proxy": "(secret)" if is_secret(proxy, spec) else proxy,
        }

    def actual(self, spec: NodeSpec, state: NodeState) -> Values:
        sections = _sections(state.text(self.path))
        ours = sections.get(NAME, {})
        on = ours.get("enabled", "1").lower() in _ON
        known = ("name", "baseurl", "enabled", "gpgcheck", "repo_gpgcheck", "gpgkey", *self._options)
        lines = [f"{key}={ours[key]}" for key in self._options if key in ours]
        file = state.files.get(self.path)
        return {
            "repository.uri": ours.get("baseurl") if on else None,
            "repository.signed_by": ours.get("gpgkey"),
            "repository.gpgcheck": ours.get("gpgcheck"),
            "repository.repo_gpgcheck": ours.get("repo_gpgcheck"),
            "repository.options": tuple(key for key in sorted(ours) if key not in known),
            "repository.entries": len(sections),
            "repository.proxy": shown("\n".join(lines) or None, self._proxy(spec), file, spec),
        }

    def files(self, spec: NodeSpec) -> tuple[Text, ...]:
        proxy = self._proxy(spec)
        text = resources.document(
            "repository/toolkit.repo", section=NAME, url=self.url(spec), keyring=self.keyring, proxy=proxy or ""
        )
        return (Text(self.path, text, is_secret(proxy, spec)),)

    def without(self, path: str, text: str, spec: NodeSpec) -> str | None:
        """Return the file without the enabled sections for the repository; None if it has none.

        The probe reads only files that say nvidia-container or nvidia-docker.
        """
        wanted = _without_architecture(self.url(spec))
        kept = ""
        for block in re.split(r"^(?=[ \t]*\[)", text, flags=re.MULTILINE):
            values = next(iter(_sections(block).values()), {})
            urls = values.get("baseurl", "").replace(",", " ").split()
            named = any(_without_architecture(url) == wanted or apt_sources.OLD.search(f"{url}/") for url in urls)
            kept += "" if named and values.get("enabled", "1").lower() not in _OFF else block
        return None if kept == text else kept

    def setting(self, spec: NodeSpec, url: str) -> str | None:
        """Return curl's setting of the proxy."""
        proxy = spec.toolkit.repo.proxy
        return f'proxy = "{_with_port(resolve(proxy).reveal())}"' if proxy else None

    def _proxy(self, spec: NodeSpec) -> str | None:
        """Return dnf's options for the proxy; it wants user and password apart. ``expected`` refuses some values."""
        if not spec.toolkit.repo.proxy:
            return None
        parts = urlsplit(_with_port(resolve(spec.toolkit.repo.proxy).reveal()))
        lines = [f"proxy={parts.scheme}://{parts.netloc.rpartition('@')[2]}"]
        if parts.username is not None:
            lines += [f"proxy_username={unquote(parts.username)}", f"proxy_password={unquote(parts.password or '')}"]
        return "\n".join(lines)


_ON, _OFF = ("1", "yes", "true", "on"), ("0", "no", "false", "off")


def source(state: NodeState) -> AptSource:
    """Return what this node's package manager reads."""
    return DnfSource() if manager(state).dnf else AptSource()


def _with_port(proxy: str) -> str:
    """Write the port out: curl and dnf take 1080 for the port of an http proxy that names none."""
    scheme, _, rest = proxy.rstrip("/").partition("://")
    port = "" if re.search(r":\d+$", rest.rpartition("@")[2]) else {"http": ":80", "https": ":443"}[scheme]
    return f"{scheme}://{rest}{port}"


def _without_architecture(url: str) -> str:
    return re.sub(r"/(\$basearch|x86_64|aarch64)$", "", url.rstrip("/"))


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Parse a .repo file; a section that cannot be parsed has no values."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, default_section="")
    try:
        parser.read_string(text)
    except configparser.Error:
        return {"": {}}
    return {name: dict(parser[name]) for name in parser.sections()}


def shown(found: str | None, wanted: str | None, file: File | None, spec: NodeSpec) -> str | None:
    """Return the setting of the proxy on the node; for a secret, only whether it is the expected one."""
    if found is None or file is None or not is_secret(found, spec):
        return found
    if found != wanted:
        return "(another secret)"
    return "(secret), readable by others" if file.mode & 0o077 else "(secret)"


def is_secret(setting: str | None, spec: NodeSpec) -> bool:
    """Tell whether it has a password or comes from a reference. Its hash stays hidden, too: it can be cracked."""
    secret = setting is not None and ("@" in setting or "proxy_password=" in setting)
    return secret or (setting is not None and is_reference(spec.toolkit.repo.proxy or ""))
