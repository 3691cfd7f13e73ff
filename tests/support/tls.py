"""A TLS listener in front of a server, as managed services have one, with a certificate of its own authority."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from brainq.app.devserver.ports import free_port


class TlsFront:
    """It accepts TLS on `port`, and nothing else. `authority` is the file with the certificate to trust."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.handshakes = 0
        self.authority, key = directory / "authority.pem", directory / "key.pem"
        _write_certificate(self.authority, key)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(self.authority, key)
        self._writers: set[asyncio.StreamWriter] = set()
        self._upstream = 0

    @contextmanager
    def forward(self, upstream: int) -> Generator[Self]:
        """Forward to a port of this host for the time of the block."""
        self._upstream = upstream
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="tls")
        thread.start()
        begun = asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._context)
        server = asyncio.run_coroutine_threadsafe(begun, loop).result(30)
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(server), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)
        await asyncio.sleep(0.1)  # transports close in the next rounds

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handshakes += 1
        source, sink = await asyncio.open_connection("127.0.0.1", self._upstream)
        self._writers |= {writer, sink}
        await asyncio.gather(_pump(reader, sink), _pump(source, writer), return_exceptions=True)
        self._writers -= {writer, sink}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.transport.abort()


def _write_certificate(path: Path, key_path: Path) -> None:
    """Write a certificate of 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "brainq tests")])
    now = datetime.now(UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(place, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption_algorithm=plain)
    )
