"""The server: pipelines behind HTTP.

Read `app.py` (a request and its limits), `routes/`, `service.py` and `models.py` in this order.
"""
