"""The functions of `import bertkit`, one a job of the command line; read `training.py` first.

They take rows from Python, and the fields of the commands' settings as keyword arguments.
"""

import os

# As in `cli/main.py`: threads that spin while they wait make training ten times slower beside any
# busy program. It has no effect if torch is loaded already.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
