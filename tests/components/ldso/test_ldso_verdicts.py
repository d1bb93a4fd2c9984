"""Verdicts on gpuready's own file for ldconfig."""

from tests.verdicts import UNREADABLE, Row, fails, held, holding, is_unknown, passes, skips, state

OUR_CONF = "/etc/ld.so.conf.d/gpuready-nvidia.conf"

VERDICTS: list[Row] = [
    skips("ldso.config", "ldso: off", spec={"ldso": "off"}),
    is_unknown("ldso.config", "could not be read", state(linker=UNREADABLE)),
    fails("ldso.config", "ldso.conf", spec={"ldso": ["/opt/lib"]}),
    passes("ldso.config", "as the spec says", holding("/opt/lib\n", OUR_CONF), {"ldso": ["/opt/lib"]}),
]
test_verdict = held(VERDICTS)
