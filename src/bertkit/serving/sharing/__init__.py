"""Requests of several callers that one model computes together; read `worker.py` first."""
