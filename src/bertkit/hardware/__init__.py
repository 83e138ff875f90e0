"""Device, precision and memory of a computation. Start with `device.py`."""
