"""The earlier home of `nmt.StepLinear`."""

import warnings

from nmt.layers.kernels.stepwise import StepLinear

__all__ = ["StepLinear"]

warnings.warn("nmt.model.kernels.stepwise.StepLinear is nmt.StepLinear now", DeprecationWarning, stacklevel=2)
