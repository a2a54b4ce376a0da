"""The page of a cluster with security: who is logged in where, who was refused, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.runs.page.document import page_of_record
from tests.runs.page.stage import SECURED, failover_run, secured_result
from tests.web.api_client import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long, pytest.mark.timeout_s(180)]


@pytest.fixture(scope="module")
def html() -> str:
    return page_of_record(secured_result().record())


@pytest.fixture(scope="module")
def url(html: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "secured.html"
    path.write_text(html, "utf-8")
    return path.as_uri()


def cell(page: Page, client: str, broker: int) -> str:
    """What the table says of a client at a broker."""
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=client))
    return row.locator("td").nth(broker - 1).inner_text()


@pytest.mark.parametrize("size", [(1366, 768), (480, 800)])
def test_security__one_broker_refuses_whom_the_others_serve(
    tab: Tab, url: str, size: tuple[int, int]
) -> None:
    page = tab(url + "#t=1100&view=security", *size)
    page.get_by_role("heading", name="Who is logged in where").wait_for()
    assert "wrong password" in cell(page, "reader", 1)
    assert "connection" in cell(page, "reader", 2)
    assert "log in again within 4,9" in cell(page, "reader", 2)
    assert page.get_by_role("columnheader", name="broker 1 older metadata").count() == 1
    late = page.get_by_role("region", name="Older metadata").inner_text()
    assert "broker 1 does not know yet: +0.700 s user billing: new password" in late
    (refused,) = page.locator("main ol.events li").all_inner_texts()
    assert "login of billing by SCRAM-SHA-512 at CLIENT (reader from" in refused
    assert "Decided by older metadata: broker 1 did not know yet" in refused
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_security__what_expires_and_what_was_denied(tab: Tab, url: str) -> None:
    page = tab(url + "#t=1900&view=security", color_scheme="dark")
    expires = page.get_by_role("region", name="What expires")
    row = expires.get_by_role("row").filter(has=page.get_by_role("rowheader", name="broker 2"))
    row.wait_for()
    assert row.locator("td").all_inner_texts() == ["certificate at CLIENT", "expired", "2001-01-01"]
    denied = page.locator("main ol.events li").first.inner_text()
    assert "User:shop: denied WRITE on topic orders (shop from" in denied
    assert page.get_by_role("region", name="Older metadata").count() == 0


def test_security__stands_on_the_card_of_a_client(tab: Tab, url: str) -> None:
    page = tab(url + "#t=1900&view=client")
    page.get_by_role("button", name="shop", exact=True).click()
    card = page.get_by_role("region", name="Security")
    card.get_by_text("User:shop at broker 1").wait_for()
    card.get_by_text("denied WRITE on topic orders").first.wait_for()


def test_security__the_timeline_has_refusals_at_their_brokers(tab: Tab, url: str) -> None:
    page = tab(url)
    page.get_by_role("tab", name="Security").wait_for()
    lanes = page.evaluate(
        "kclusterPage.model.notes.filter(({kind}) => kind === 'authentication_failed')"
        ".map(({lane, mood}) => [lane, mood])"
    )
    assert lanes == [["b1", "bad"]]


def test_security__a_page_has_no_secret(html: str) -> None:
    assert "5ecret" in SECURED
    assert "5ecret" not in html


def test_security__is_nowhere_on_a_cluster_without_it(tab: Tab, tmp_path: Path) -> None:
    html = page_of_record(failover_run())
    assert 'id="secured"' not in html
    path = tmp_path / "open.html"
    path.write_text(html, "utf-8")
    page = tab(path.as_uri() + "#t=1700&view=client")
    page.get_by_role("tab", name="Groups").wait_for()
    assert page.get_by_role("tab", name="Security").count() == 0
    assert page.get_by_role("region", name="Security").count() == 0


def test_security__of_a_running_cluster(tab: Tab) -> None:
    topology = {
        "brokers": 2,
        "profile": "fast",
        "listeners": {"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        "security": {"users": {"alice": "alice-5ecret"}},
        "topics": {"orders": {"assignment": [[1, 2]]}},
    }
    with serving() as (server, api):
        path = api.cluster(topology=topology)
        api.ok("POST", f"{path}/clients", {"consumer": {"topics": "orders", "group": "g"}})
        at = path.rsplit("/", 1)[1]
        page = tab(f"{server.url}/page/{at}?token={api.token}")
        page.get_by_role("tab", name="Security").click()
        page.get_by_text("User:alice").first.wait_for()
        page.get_by_text("✓ ").first.wait_for()
        logins = api.ok("GET", path)["security"]["logins"]
        assert {one["principal"] for one in logins} == {"User:alice"}
        assert "5ecret" not in page.content()
