"""Verdicts on files of an older toolkit."""

from tests.verdicts import Row, fails, held, holding, skips

OLD_DROP_IN = "/etc/crio/conf.d/99-nvidia.toml"

VERDICTS: list[Row] = [
    fails("legacy.config", "legacy./etc/crio", holding('"nvidia-container-runtime"', OLD_DROP_IN)),
    skips("legacy.config", "no stale file"),
]
test_verdict = held(VERDICTS)
