"""The catalogue of checks, in the order in which an operator would look."""

from gpuready.checks import config, containers, driver, libcuda, memlock

CATALOGUE = (*driver.CHECKS, *config.CHECKS, *libcuda.CHECKS, *containers.CHECKS, *memlock.CHECKS)
"""Every check of this release."""

BY_ID = {check.id: check for check in CATALOGUE}
