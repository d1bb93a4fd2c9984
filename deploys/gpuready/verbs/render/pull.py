"""Write a systemd service and timer with which a node fetches its spec, applies it, and sends its result away.

Sources: systemd.service(5), systemd.unit(5) (specifiers), systemd.timer(5).
"""

from gpuready.base import resources
from gpuready.base.errors import UsageError
from gpuready.base.places import upload
from gpuready.inventory.fetched import source

#: Where `render cloud-init` and the guide install gpuready.
PROGRAM = "/opt/gpuready/bin/gpuready"


def install(spec: str, results: str, every: int) -> str:
    """Return a program (sh) that writes both units and starts the timer. Raises UsageError.

    ``spec``: URL for -i. ``results``: directory or URL. ``every``: seconds.
    """
    if (signers := source(spec).signers) and not signers.startswith("/"):
        raise UsageError(
            f"--spec {spec}: {signers} is not an absolute path", remedy="signers=/etc/gpuready/allowed_signers"
        )
    if "?" in spec.partition("#")[0]:
        raise UsageError(
            f"--spec {spec}: all users of a node can read its unit, and so a secret in the query",
            remedy="a URL without ?; a token goes into GPUREADY_INVENTORY_HEADER",
        )
    place = results.rstrip("/")
    if not place.startswith("/"):
        _check_url(place)
    for option, text in (("--spec", spec), ("--results", results)):
        if not text.isprintable():
            raise UsageError(f"{option} {text!r}: a control character")
    words = {"spec": resources.unit_word(spec), "output": resources.unit_word(f"json:{place}/", "%H.json")}
    service = resources.document("verbs/render/pull.service", program=PROGRAM, **words)
    timer = resources.document("verbs/render/pull.timer", every=every, spread=every // 2)
    return resources.script("verbs/render/pull", service=service, timer=timer)


def _check_url(place: str) -> None:
    if "://" not in place:
        raise UsageError(f"--results {place}: not an absolute path", remedy="/DIRECTORY, https://... or s3://...")
    if "?" in place or "#" in place:
        raise UsageError(f"--results {place}: the name of each node goes to its end", remedy="a URL without ? and #")
    upload(f"{place}/NODE.json", "--results")
