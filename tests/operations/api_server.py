"""An API server on loopback, as far as kubectl get, patch, drain, cordon and uncordon ask: one node and its pods.

No controller runs: an evicted pod ends at once, or stays. The real one is in tests/kubernetes. Sources: the reference
of Kubernetes' API, pkg/drain of kubernetes/kubectl (what a drain asks), and managedFields of the real one.
"""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.lab.server import Threads

#: An HTTP status and a JSON document, or a text of another kind.
Answer = tuple[int, Any]
_EVICTION = {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1"}
_KINDS = {
    "v1": ({"name": "nodes", "kind": "Node", "namespaced": False}, {"name": "pods", "kind": "Pod"}, _EVICTION),
    "apps/v1": ({"name": "daemonsets", "kind": "DaemonSet"},),
    "policy/v1": ({"name": "poddisruptionbudgets", "kind": "PodDisruptionBudget"},),
}
_VERSIONS = {name: {"groupVersion": name, "version": "v1"} for name in _KINDS if "/" in name}
_GROUPS = [{"name": k[:-3], "versions": [v], "preferredVersion": v} for k, v in _VERSIONS.items()]
#: What kubectl looks up first: which kinds of objects there are.
_DISCOVERY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"apiVersion": "v1", "kind": "APIGroupList", "groups": _GROUPS},
}
_LIST = {"apiVersion": "v1", "kind": "APIResourceList"}
_DISCOVERY |= {
    f"/apis/{name}".replace("/apis/v1", "/api/v1"): {
        **_LIST,
        "groupVersion": name,
        "resources": [{"singularName": "", "namespaced": True, "verbs": ["get", "patch"], **each} for each in kinds],
    }
    for name, kinds in _KINDS.items()
}


class Request(NamedTuple):
    """What was asked. ``command`` is kubectl's verb, which kubectl 1.20 does not send."""

    command: str
    method: str
    path: str
    query: dict[str, str]
    body: Any

    @property
    def words(self) -> str:
        """The method and the last part of the path, such as ``GET pods``."""
        return f"{self.method} {self.path.rsplit('/', 1)[-1]}"


class ApiServer(Threads):
    """The node ``n1``, its pods, and all ``requests`` about them.

    ``before``: by ``[COMMAND ]METHOD NAME`` what happens before a request is answered. It may return another answer,
    or raise ConnectionError, which ends the connection without one. ``held``: pods that a budget keeps. ``staying``:
    pods that are evicted and do not end.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.node: dict[str, Any] | None = {"metadata": {"name": "n1", "annotations": {}}, "spec": {}}
        self.pods: dict[str, dict[str, Any]] = {}
        self.requests: list[Request] = []
        self.before: dict[str, Callable[[Request], Answer | None]] = {}
        self.held, self.staying, self.managed = set[str](), set[str](), True
        self._owners: dict[tuple[str, ...], str] = {}

    def config(self, path: Path) -> None:
        """Write a kubeconfig."""
        server = {"name": "own", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}
        context = {"name": "own", "context": {"cluster": "own", "user": ""}}
        whole = {"apiVersion": "v1", "kind": "Config", "clusters": [server], "contexts": [context]}
        path.write_text(json.dumps({**whole, "current-context": "own"}), "utf-8")

    def run(self, *pods: str, owner: str = "ReplicaSet", **spec: Any) -> None:
        """Add pods, as NAMESPACE/NAME, of a controller of this kind; of none if that is empty."""
        for pod in pods:
            namespace, name = pod.split("/")
            owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "own", "uid": "0", "controller": True}]
            metadata = {"namespace": namespace, "name": name, "uid": pod, "ownerReferences": owners if owner else []}
            self.pods[pod] = {"metadata": metadata, "spec": {"nodeName": "n1", **spec}, "status": {"phase": "Running"}}

    @property
    def cordoned(self) -> bool:
        return bool(self.node and self.node["spec"].get("unschedulable"))

    def patch(self, manager: str, patch: dict[str, Any]) -> None:
        """Merge this into the node. A field belongs to the manager that changed it last."""
        assert self.node is not None
        for path, value in _merged(self.node, patch):
            self._owners.pop(path, None)
            if value is not None:
                self._owners[path] = manager

    def answer(self, request: Request) -> Answer:
        """Answer a request, after what happens before it."""
        if request.path in _DISCOVERY:
            return 200, _DISCOVERY[request.path]
        self.requests.append(request)
        happens = self.before.get(f"{request.command} {request.words}") or self.before.get(request.words)
        answer = happens(request) if happens is not None else None
        if answer is not None:
            return answer
        match request.path.strip("/").split("/")[2:]:
            case ["nodes", name]:
                if self.node is None or name != "n1":
                    return missing("nodes", name)
                if request.method == "PATCH":
                    self.patch(request.query.get("fieldManager", "kubectl"), request.body)
                return 200, self._shown()
            case ["pods"]:
                return 200, {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [*self.pods.values()]}
            case ["namespaces", namespace, "pods", name, *rest]:
                return self._pod(f"{namespace}/{name}", evicts=bool(rest))
            case ["v1", "namespaces", namespace, "daemonsets", name]:
                metadata = {"namespace": namespace, "name": name}
                return 200, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}
        return status(404, "NotFound", "the server could not find the requested resource")

    def _pod(self, pod: str, *, evicts: bool) -> Answer:
        if pod not in self.pods:
            return missing("pods", pod.split("/")[1])
        if not evicts:
            return 200, {"apiVersion": "v1", "kind": "Pod", **self.pods[pod]}
        if pod in self.held:
            return status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        if pod in self.staying:
            self.pods[pod]["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        else:
            del self.pods[pod]
        return 201, {"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201}

    def _shown(self) -> dict[str, Any]:
        assert self.node is not None
        fields: dict[str, dict[str, Any]] = {}
        for path, manager in self._owners.items():
            into = fields.setdefault(manager, {})
            for key in path:
                into = into.setdefault(f"f:{key}", {})
        managed = [{"manager": each, "operation": "Update", "fieldsV1": fields[each]} for each in fields]
        metadata = {**self.node["metadata"], **({"managedFields": managed} if self.managed else {})}
        return {"apiVersion": "v1", "kind": "Node", "spec": self.node["spec"], "metadata": metadata}


def status(code: int, reason: str, message: str, **details: str) -> Answer:
    """An error of the API server."""
    head = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code}
    return code, {**head, "reason": reason, "message": message, "details": details}


def missing(kind: str, name: str) -> Answer:
    """The error that something is not there."""
    return status(404, "NotFound", f'{kind} "{name}" not found', kind=kind, name=name)


def _merged(into: Any, patch: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Merge (RFC 7386), and yield what changed."""
    for key, value in patch.items():
        if isinstance(value, dict):
            yield from _merged(into.setdefault(key, {}), value, (*path, key))
        elif into.get(key) != value:
            into[key] = value
            if value is None:
                del into[key]
            yield (*path, key), value


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        command = self.headers.get("Kubectl-Command", "").removeprefix("kubectl ")
        query = dict(parse_qsl(parts.query))
        try:
            request = Request(command, self.command, parts.path, query, json.loads(text or b"null"))
            code, found = self.server.answer(request)
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain" if isinstance(found, bytes) else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:  # also where kubectl was killed
            self.close_connection = True

    do_GET = do_PATCH = do_POST = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tests look at the requests."""
