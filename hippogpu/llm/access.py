"""Where a server is and what it is told to let us in: an address that can be shown, and secrets that never are."""

from __future__ import annotations

import os
import re
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import getproxies

from hippogpu.config import LlmConfig
from hippogpu.config.checks import without_login
from hippogpu.errors import ConfigError
from hippogpu.llm.words import without_stop

if TYPE_CHECKING:
    import httpx

_LOGIN = re.compile(r"^(https?://)[^/?#]*@")
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Access(NamedTuple):
    """How a server is reached.

    endpoint      its base address, without name and password
    target        where chat requests are posted
    authorization value of the header Authorization; "" for none
    secrets       what must not be shown
    """

    endpoint: str
    target: httpx.URL
    authorization: str
    secrets: tuple[str, ...]


def access_to(config: LlmConfig, module: Any) -> Access:
    """The access that a configuration gives. A name and password in the address go before the key.

    module : httpx. ConfigError when the address is none, or the key cannot stand in a header.
    """
    url = _checked(config.url, module)
    endpoint = _LOGIN.sub(r"\1", config.url).rstrip("/")
    target = module.URL(f"{endpoint}/chat/completions")
    key = _key(config.key_variable)
    if url.userinfo:
        basic = b64encode(f"{url.username}:{url.password}".encode()).decode()
        return Access(endpoint, target, f"Basic {basic}", (basic, url.password, url.userinfo.decode(), key))
    return Access(endpoint, target, f"Bearer {key}" if key else "", (key,))


def certificates(module: Any) -> ssl.SSLContext:
    """The certificates that servers are checked by; ConfigError when those of the environment cannot be read."""
    try:
        context: ssl.SSLContext = module.create_ssl_context()
    except OSError as error:
        raise ConfigError(
            f"The certificates of servers cannot be read: {error}. Correct {_set_to(_CERTIFICATE_VARIABLES)}."
        ) from error
    return context


def client(access: Access, module: Any, context: ssl.SSLContext) -> httpx.AsyncClient:
    """A client of a single connection; ConfigError when the proxies of the environment cannot be used."""
    with usable_proxies(module):
        made: httpx.AsyncClient = module.AsyncClient(
            headers={"Content-Type": "application/json"} | headers_of(access),
            limits=module.Limits(max_connections=1, max_keepalive_connections=1),
            timeout=None,
            verify=context,
        )
    return made


def headers_of(access: Access) -> dict[str, str]:
    """The header that lets us in, if there is one."""
    return {"Authorization": access.authorization} if access.authorization else {}


@contextmanager
def usable_proxies(module: Any) -> Iterator[None]:
    """Making a client inside gives a ConfigError when the proxies of the environment cannot be used."""
    try:
        for proxy in _proxies():
            _check_proxy(proxy, module)
        yield
    except ImportError as error:
        raise ConfigError(
            "A SOCKS proxy needs the package 'socksio', which is not installed. Install it with: pip install "
            f"'httpx[socks]', or correct {_set_to(_PROXY_VARIABLES)}."
        ) from error
    except (ValueError, module.InvalidURL) as error:
        raise ConfigError(
            f"The proxy of the environment cannot be used: {_why(error)}. Correct {_set_to(_PROXY_VARIABLES)}."
        ) from error


def _checked(address: str, module: Any) -> httpx.URL:
    try:
        url = module.URL(address)
        _check_place(url)
        if url.query or url.fragment:
            raise ValueError("it has a query or a fragment, behind which no path can be put")
    except (ValueError, module.InvalidURL) as error:
        shown = without_login(address)
        # With a password inside, the words of the error may hold a part of it, and so would its traceback.
        why = str(error) if shown == address else "its host or port is none (write / ? # @ of a password as %2F %3F …)"
        raise ConfigError(
            f"The 'url' of LlmConfig is no address: {without_stop(why)}. Got '{shown}'. "
            "Give the base of the API, such as http://localhost:8000/v1."
        ) from (error if shown == address else None)
    checked: httpx.URL = url
    return checked


def _check_place(url: httpx.URL) -> None:
    """ValueError for a host or port that no connection can be made to."""
    if not url.host:
        raise ValueError("it names no host")
    if url.port is not None and not 0 < url.port < 2**16:
        raise ValueError(f"the port {url.port} is not between 1 and 65535")
    if b"%" in url.raw_host:
        raise ValueError("the host has a character that no name can have")
    # What the system's own look-up does with it; it refuses empty and overlong parts.
    url.raw_host.decode("ascii").encode("idna")


def _check_proxy(proxy: str, module: Any) -> None:
    _check_place(module.URL(proxy if "://" in proxy else f"http://{proxy}"))


def _proxies() -> Iterator[str]:
    """Those that httpx would take from the environment."""
    found = getproxies()
    return (found[scheme] for scheme in ("http", "https", "all") if found.get(scheme))


def _why(error: Exception) -> str:
    """The error's words, where none of the proxies holds a password that they could repeat a part of."""
    return "it is no address" if any("@" in proxy for proxy in _proxies()) else str(error)


def _set_to(variables: tuple[str, ...]) -> str:
    """The variables that are set, with their values."""
    names = [form for name in variables for form in (name, name.lower()) if os.environ.get(form)]
    return ", ".join(f"{name} ('{without_login(os.environ[name])}')" for name in names) or " or ".join(variables)


def _key(variable: str) -> str:
    """The key in an environment variable; empty when there is none."""
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"The key in {variable} has characters that no HTTP header can hold. Set it again.")
    return key
