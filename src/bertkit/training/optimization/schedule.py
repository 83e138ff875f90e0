"""Learning rate schedules: a linear warm-up, then a decay.

Source: Devlin et al. 2018, appendix A.2 (warm-up, then linear decay); Loshchilov and Hutter 2016
(cosine); Vaswani et al. 2017, section 5.3 (inverse_sqrt).
"""

import math
from typing import Literal

Schedule = Literal["linear", "cosine", "constant", "inverse_sqrt"]


def learning_rate_at(
    step: int,
    *,
    num_steps: int,
    peak: float,
    warmup: float,
    schedule: Schedule,
) -> float:
    """Return the learning rate of one step.

    Args:
        step: counted from 0; the first step's rate is above 0.
        num_steps: steps of the whole run. linear and cosine reach 0 just after the last one;
            inverse_sqrt doesn't: it halves each time the number of steps quadruples.
        peak: the highest rate.
        warmup: share of the steps in which the rate rises.
        schedule: the decay after the warm-up.
    """
    warmup_steps = round(warmup * num_steps)
    if step < warmup_steps:
        return peak * (step + 1) / (warmup_steps + 1)
    progress = (step - warmup_steps) / max(1, num_steps - warmup_steps)
    if schedule == "constant":
        return peak
    if schedule == "inverse_sqrt":
        return peak * math.sqrt((warmup_steps + 1) / (step + 1))
    if schedule == "cosine":
        return peak * 0.5 * (1.0 + math.cos(math.pi * progress))
    return peak * (1.0 - progress)
