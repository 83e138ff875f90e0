"""Nothing is sent to whom the packages report their use."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
