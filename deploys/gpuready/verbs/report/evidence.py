"""``gpuready report --check-signature``: who signed a result, and whether it is of these specs and new enough."""

import time
from collections.abc import Sequence

from gpuready.base.errors import UsageError
from gpuready.base.files import read_file, reason
from gpuready.contract.node_record import seconds, spec_hash
from gpuready.inventory.hosts import HostEntry
from gpuready.inventory.signatures import RESULT, SignatureError, Signers, sign_command, signer
from gpuready.result.document import DocumentError
from gpuready.result.model import Run

#: Bytes of a signature; it has about 300.
_MOST = 100_000
#: Seconds by which the clock of the machine that wrote a result may be ahead.
AHEAD = 600
#: Outcomes of hosts that were not verified to the end.
_UNVERIFIED = ("unreachable", "not_attempted")


def allowed(name: str) -> Signers:
    """Read the file of allowed signers. Raises UsageError."""
    try:
        return Signers.read(name)
    except ValueError as e:
        raise UsageError(f"--check-signature {name}: {e}", remedy="name the file of allowed signers") from None


def signed_by(path: str, data: bytes, signers: Signers) -> str:
    """Return who signed the content of ``path``, by ``path.sig``. Raises DocumentError."""
    try:
        signature = read_file(f"{path}.sig", _MOST)
    except (OSError, ValueError) as e:
        raise DocumentError(
            f"{path}.sig: cannot be read: {reason(e)}", remedy=f"sign the result: {sign_command(RESULT)}"
        ) from None
    try:
        return signer(data, signature, signers, RESULT)
    except SignatureError as e:
        raise DocumentError(
            f"{path}: expected a signature by a key in {signers.name}, got: {e}",
            remedy="do not use the result; if you changed or signed it yourself, run verify again, and sign what it "
            "writes with an allowed key",
        ) from None


def refuse_other(path: str, run: Run, entries: Sequence[HostEntry]) -> None:
    """Raise DocumentError if the run did not verify all these hosts with these specs."""
    if why := _unfit(run):
        raise DocumentError(f"{path}: {why}", remedy="run verify on all hosts of -i, and sign what it writes")
    verified = {host.name: host.spec for host in run.hosts if host.probed and host.outcome not in _UNVERIFIED}
    for entry in entries:
        spec = verified.get(entry.name)
        if spec != spec_hash(entry.spec):
            why = "was verified with another spec" if spec else "was not verified"
            raise DocumentError(
                f"{path}: {entry.name} {why}",
                remedy="give -i the inventory that was verified, or verify these hosts again",
            )


def _unfit(run: Run) -> str:
    """Return why the run proves nothing of any host; empty if it may."""
    if run.verb != "verify":
        return f"a result of {run.verb or 'no command'}, not of verify"
    if run.error is not None:
        return f"the run of verify failed: {run.error}"
    if run.scope is None:
        return "the result does not say what was judged"
    return run.scope.narrowed


def refuse_old(path: str, run: Run, most: int) -> None:
    """Raise DocumentError if the run ended more than ``most`` seconds ago, or in the future."""
    try:
        ended = seconds(run.ended or "")
    except ValueError:
        raise DocumentError(f"{path}: the time is missing") from None
    now = time.time()
    if ended > now + AHEAD:
        raise DocumentError(
            f"{path}: its time {run.ended} is in the future", remedy="check the clock, run verify again"
        )
    if ended < now - most:
        raise DocumentError(f"{path}: the result is from {run.ended}, older than --max-age", remedy="run verify again")
