"""The only transfer from device to host, so that its calls show where and how often the host waits."""

from torch import Tensor


def to_host(values: Tensor) -> Tensor:
    """Copy values to the CPU. Waits until the device has computed them."""
    return values.cpu()
