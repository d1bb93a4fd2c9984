"""What the spec of the RDMA exporter refuses, and the file that is read."""

from gpuready.components.monitoring.component import scrape
from gpuready.model.spec import NodeSpec


def spec(**monitoring: object) -> NodeSpec:
    return NodeSpec.model_validate({"monitoring": monitoring})


def test_the_file_is_read() -> None:
    assert scrape(spec(rdma_exporter="textfile")) == ("cat", "/var/lib/prometheus/node-exporter/rdma.prom")
    assert scrape(spec()) == ()
