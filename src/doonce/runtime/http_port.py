"""The handoff port over the service's HTTP API.

This is an ordinary client on purpose: both questions are idempotent, so a lost answer costs a repetition and
never an effect. The outbound client that must not repeat anything is another one, in `doonce.http`.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Final, TypeVar

import aiohttp
import msgspec

from doonce.base.errors import DeadlineExceeded, DoonceError, Invalid, Unavailable
from doonce.base.secrets import Secret
from doonce.wire import (
    ACCEPT_BODY_BYTES_MAX,
    RECEIPT_BODY_BYTES_MAX,
    AcceptBatch,
    AcceptRequest,
    AcceptResults,
    Admission,
    ErrorDocument,
    Refused,
    RejectBody,
    RejectRequest,
    decode,
    encode,
    raised_from,
)

ACCEPT_PATH: Final = "/v1/handoffs/accept"
REJECT_PATH: Final = "/v1/handoffs/reject"

StructT = TypeVar("StructT", bound=msgspec.Struct)


class HttpHandoffs:
    """Asks a service at `base_url` with a bearer credential.

    An async context manager that owns its connections. Raises `Unavailable` for whatever is not a whole,
    valid answer (refused, reset, redirected, not JSON, over its bound), `DeadlineExceeded` when none came in
    time, and otherwise the error that the service named. It never retries by itself.
    """

    def __init__(self, base_url: str, credential: Secret, *, timeout_us: int = 20_000_000) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise Invalid("the service's URL must start with http:// or https://")
        self._base_url = base_url.rstrip("/")
        self._credential = credential
        self._timeout = aiohttp.ClientTimeout(total=timeout_us / 1_000_000)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "HttpHandoffs":
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def accept(self, requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        """`POST /v1/handoffs/accept`."""
        body = encode(AcceptBatch(requests=tuple(requests)))
        answer = await self._post(ACCEPT_PATH, body, AcceptResults, ACCEPT_BODY_BYTES_MAX)
        return answer.results

    async def reject(self, request: RejectRequest) -> Admission | Refused:
        """`POST /v1/handoffs/reject`."""
        body = encode(RejectBody(request=request))
        return await self._post(REJECT_PATH, body, Admission, RECEIPT_BODY_BYTES_MAX)

    async def _post(self, path: str, body: bytes, kind: type[StructT], bytes_max: int) -> StructT:
        headers = {
            "Authorization": f"Bearer {self._credential.reveal()}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        if self._session is None:
            # Made here, where a loop runs; no cookies and no proxy of the environment for a credential.
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
        try:
            async with self._session.post(
                self._base_url + path,
                data=body,
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                raw = await _bounded(response.content, bytes_max)
                status = response.status
        except TimeoutError as late:
            raise DeadlineExceeded("the service did not answer in time") from late
        except aiohttp.ClientError as failed:
            raise Unavailable(f"the service cannot be reached: {type(failed).__name__}") from failed
        if status == 200:
            return _whole(raw, kind, bytes_max)
        raise _error(status, raw)


async def _bounded(stream: aiohttp.StreamReader, bytes_max: int) -> bytes:
    """Read to the end of the body, or stop one byte past its bound."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in stream.iter_any():
        size += len(chunk)
        if size > bytes_max:
            raise Unavailable(f"the service's answer is over {bytes_max} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _whole(raw: bytes, kind: type[StructT], bytes_max: int) -> StructT:
    try:
        return decode(raw, kind, bytes_max=bytes_max)
    except Invalid as malformed:
        # Not our request is invalid but its answer: nothing durable was learned, so it is asked again.
        raise Unavailable("the service's answer is not what its protocol promises") from malformed


def _error(status: int, raw: bytes) -> DoonceError:
    try:
        return raised_from(decode(raw, ErrorDocument, bytes_max=RECEIPT_BODY_BYTES_MAX))
    except Invalid:
        return Unavailable(f"the service answered with status {status}")
