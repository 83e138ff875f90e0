"""Recurrent nets, small and plain: what attention is measured against."""
