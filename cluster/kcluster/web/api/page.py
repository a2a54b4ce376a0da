"""The live page of a cluster.

Owns: this route.  Never: draws (runs/page/ does).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.routes import HTML, route

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""One file that asks its own server only."""


@route("GET", "/page/<id>", answer=HTML, errors=(404,))
def show_page(call: ApiCall) -> ApiAnswer:
    """The live page of a cluster: one HTML file."""
    from kcluster.runs.page.document import page_html

    headers = {"Content-Security-Policy": POLICY}
    body = page_html(call.held.id).encode()
    return ApiAnswer(body=body, media_type=f"{HTML}; charset=utf-8", headers=headers)
