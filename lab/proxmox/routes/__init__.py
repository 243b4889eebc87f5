"""The handlers, one module per family of routes."""
