"""The HTTP API and the server under the live page (docs/reference/http-api.md)."""
