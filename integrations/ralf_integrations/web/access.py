"""Who may look at the pages, and what a browser may do with them: the token of the printed address, the cookie that it
is exchanged for, the Host header, requests of other sites, and the headers of every answer.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTRY = "/enter"
"""The path of the printed address."""

_METHODS = ("GET", "HEAD", "POST")
_FORM = "application/x-www-form-urlencoded"

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What every answer says. `Referrer-Policy` is `no-referrer` where the address holds the token."""

_OURS = ("same-origin", "none")  # of a request that one of our pages, or its user, has made (`Sec-Fetch-Site`)


class Access:
    """The secrets of one server. The token opens one browser, once; its cookie lasts as long as the server.

    is_persons  whether a person has started it: what its forms record is theirs, and the pages of any other only read
    home        the path below which everything lies, drawn at random: browsers do not tell ports apart, and send a
                cookie to every server of 127.0.0.1 that is asked for a path of it
    """

    def __init__(self, port: int, *, is_persons: bool = True) -> None:
        self.is_persons = is_persons
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
        self.home = f"/{secrets.token_urlsafe(18)}"
        self.cookie = f"ralf_{port}"
        self.form_token = secrets.token_urlsafe(32)
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = b""

    @property
    def address(self) -> str:
        """The path that lets a browser in, once."""
        return f"{ENTRY}?token={self._token or ''}"

    def enter(self, token: str) -> str | None:
        """The value of the cookie for the token; None for a wrong one, and for one that was used."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token = None
        session = secrets.token_urlsafe(32)
        self._session = _digest(session)
        return session

    def is_known(self, session: str) -> bool:
        """Whether a cookie is the one that was given."""
        return bool(self._session) and hmac.compare_digest(_digest(session), self._session)

    def is_ours(self, form_token: str) -> bool:
        """Whether a form was made by one of our pages."""
        return hmac.compare_digest(form_token.encode(), self.form_token.encode())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class Gate:
    """Lets nothing through to the pages but what the browser of the person asks for."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._names_sites = False  # whether the browser says of each request which site has made it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"not served: {scope['type']}")

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = {name.lower() for name, _ in message["headers"]}
                ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] += [pair for pair in ours if pair[0] not in told]
            await send(message)

        home, answer = self._access.home, self._refusal(scope) or self._entry(scope)
        is_below = scope["path"].startswith(f"{home}/")
        if answer is None and not (is_below and self._access.is_known(_cookie(scope, self._access.cookie))):
            answer = _refused(403, "this browser was not let in: open the address that `ralf web` printed")
        await (answer or self._app)({**scope, "root_path": home}, receive, with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        """What is said to a request that no browser of the person would make of itself."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0] not in self._access.hosts:
            return _refused(421, "this server is called 127.0.0.1 or localhost, and by no other name")
        if scope["method"] not in _METHODS:
            return _refused(405, f"not served: {scope['method'][:20]}")
        sites = _values(scope, b"sec-fetch-site")
        if any(site not in _OURS for site in sites):
            return _refused(403, "another site asked for this page: type its address yourself")
        origins = _values(scope, b"origin")
        if scope["method"] == "POST":
            if origins != [f"http://{hosts[0]}"] or sites != ["same-origin"] * self._names_sites:
                return _refused(403, "another site sent this form")
            if [kind.partition(";")[0].strip() for kind in _values(scope, b"content-type")] != [_FORM]:
                return _refused(415, "a form was expected")
        elif any(origin != f"http://{hosts[0]}" for origin in origins):
            return _refused(403, "another site asked for this page")
        return None

    def _entry(self, scope: Scope) -> PlainTextResponse | RedirectResponse | None:
        """The answer to the printed address: the cookie, and at once another address, without the token in it."""
        if scope["path"] != ENTRY:
            return None
        if scope["method"] != "GET":
            return _refused(405, "the address is opened, nothing is sent to it")
        token = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token", [""])[0]
        session = self._access.enter(token)
        if session is None:
            answer = _refused(403, "this address was used already, or is not the one that `ralf web` printed")
            answer.headers["Referrer-Policy"] = "no-referrer"
            return answer
        self._names_sites = bool(_values(scope, b"sec-fetch-site"))
        home = self._access.home
        entered = RedirectResponse(f"{home}/", 303, {"Referrer-Policy": "no-referrer"})
        entered.set_cookie(self._access.cookie, session, httponly=True, samesite="strict", path=home)
        return entered


def _refused(status: int, why: str) -> PlainTextResponse:
    hint = "hint: stop `ralf web` and start it again for a new address\n" if status == 403 else ""
    return PlainTextResponse(f"error: ralf web: {why}\n{hint}", status)


def _values(scope: Scope, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key == name]


def _cookie(scope: Scope, name: str) -> str:
    """The cookie's value; "" where there is none, or more than one."""
    pairs = (pair.strip().partition("=") for header in _values(scope, b"cookie") for pair in header.split(";"))
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else ""
