"""Verdicts on Docker's package."""

from tests.verdicts import Row, fails, having, held, passes, skips, state

DISTRO = {"runtimes": {"docker": {"install": "distro"}}}

VERDICTS: list[Row] = [
    # engine.config
    skips("engine.config", "no engine is to be installed"),
    fails("engine.config", "engine.docker", state(have=("apt-get",)), DISTRO),
    passes("engine.config", "as the spec says", having("dockerd"), DISTRO),
]
test_verdict = held(VERDICTS)
