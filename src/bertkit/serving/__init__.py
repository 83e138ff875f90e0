"""The server: pipelines behind HTTP.

Read `responder.py` (a request and its limits), `routes/`, `endpoint.py` and `service.py`.
"""
