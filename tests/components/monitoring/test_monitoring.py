"""The spec of the RDMA exporter, and where on the node its answer is asked for."""

import pytest

from gpuready.components.monitoring.component import scrape
from gpuready.model.spec import NodeSpec


def spec(**monitoring: object) -> NodeSpec:
    return NodeSpec.model_validate({"monitoring": monitoring})


@pytest.mark.parametrize(
    ("listen", "words"),
    [
        ("127.0.0.1:9879", ("127.0.0.1", "9879")),
        ("0.0.0.0:80", ("127.0.0.1", "80")),
        ("[::]:9879", ("::1", "9879")),
        ("[2001:0DB8::1]:9879", ("2001:db8::1", "9879")),
    ],
)
def test_where_the_check_asks(listen: str, words: tuple[str, str]) -> None:
    assert scrape(spec(rdma_exporter="service", listen=listen))[3:] == words


def test_a_textfile_is_read() -> None:
    assert scrape(spec(rdma_exporter="textfile")) == ("cat", "/var/lib/prometheus/node-exporter/rdma.prom")
    assert scrape(spec()) == ()


NO_ADDRESSES = "9879 :9879 localhost:1 1.2.3.4:0 1.2.3.4:65536 ::1:80 [1.2.3.4]:1 1.2.3:1 [::ffff:10.0.0.1]:9879"


@pytest.mark.parametrize("listen", NO_ADDRESSES.split())
def test_no_address(listen: str) -> None:
    with pytest.raises(ValueError, match=r"monitoring\.listen"):
        spec(listen=listen)
