"""Routes: a table of endpoints for each kind of client, and what their requests hold."""
