"""Endpoints of other services' shapes, so that their clients work unchanged."""
