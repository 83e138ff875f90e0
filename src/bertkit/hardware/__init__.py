"""The device, its precision and its memory."""
