"""The live page of a cluster.

Owns: this route.  Never: draws (runs/page/ does).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kcluster.handle.cluster import Cluster
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.routes import HTML, route

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's content security policy: one file that may only request its own server."""


class PageWanted(Struct):
    """Where to serve pages."""

    port: Annotated[
        int, Meta(ge=0, le=65535, description="Unless they are served already; 0: a free one.")
    ] = 0


class PageAnswer(Struct, frozen=True):
    """The address of a cluster's page, with the token."""

    page: str


@route("POST", "/v1/clusters/<id>/page", body=PageWanted, answer=PageAnswer, errors=(404, 409, 422))
def serve_page(call: ApiCall) -> PageAnswer:
    """Serve the live page of a cluster, and this API, on a port of this machine, unless that is
    done already."""
    id = call.held.id
    call.server.serve_page(call.values(PageWanted).port)
    return PageAnswer(call.server.page_url(id))


@route("GET", "/page/<id>", answer=HTML, errors=(404,))
def show_page(call: ApiCall) -> ApiAnswer:
    """The live page of a cluster: one HTML file."""
    from kcluster.actions.base import menu_items
    from kcluster.actions.menu import menu_json
    from kcluster.runs.page.document import page_html

    headers = {"Content-Security-Policy": POLICY}
    source = call.held.source
    topology = source.topology if isinstance(source, Cluster) else source.scenario.topology
    items = menu_items(topology)
    body = page_html(call.held.id, menu_json(items)).encode()
    return ApiAnswer(body=body, media_type=f"{HTML}; charset=utf-8", headers=headers)
