"""An MCP server for the tests, made with the official SDK: over pipes, or at an address with `--http`.

At an address it first prints its port: PORT, or one that was free. With TLS, a folder, it makes a certificate there and wants
to be spoken to over https.
"""

import datetime
import os
import socket
import sys
import time

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("tests", log_level="ERROR")
LOOKS = ToolAnnotations(read_only_hint=True)
SAME = ToolAnnotations(idempotent_hint=True)
calls = 0


@server.tool(annotations=LOOKS)
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(annotations=SAME)
def echo(text: str) -> str:
    """Says the same."""
    return text


@server.tool()
def big(size: int) -> str:
    """Says a lot."""
    return "x" * size


@server.tool()
async def slow(seconds: float, ended: str = "") -> str:
    """Takes its time; writes to `ended` when it is told not to bother any more."""
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        if ended:
            with open(ended, "w") as file:
                file.write("cancelled")
        raise
    return "done"


@server.tool()
def fail(why: str) -> str:
    """Goes wrong."""
    raise ToolError(why)


@server.tool()
def count() -> int:
    """Counts its calls."""
    global calls
    calls += 1
    return calls


@server.tool()
def environment(name: str) -> str:
    """Says a variable of its environment."""
    return os.environ.get(name, "(not there)")


@server.tool()
def leave(code: int) -> str:
    """Ends the server in the middle of a call."""
    print("今から終わります", file=sys.stderr, flush=True)
    time.sleep(0.05)
    os._exit(code)


def certified(folder: str) -> dict[str, str]:
    """Makes a certificate for this machine, and says where it is."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    paths = {"ssl_certfile": f"{folder}/certificate.pem", "ssl_keyfile": f"{folder}/key.pem"}
    with open(paths["ssl_certfile"], "wb") as file:
        file.write(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with open(paths["ssl_keyfile"], "wb") as file:
        file.write(key.private_bytes(*plain))
    return paths


def main() -> None:
    if "--http" not in sys.argv:
        server.run()
        return
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    app = server.streamable_http_app(stateless_http="--stateless" in sys.argv, json_response="--json" in sys.argv)
    secure = certified(os.environ["TLS"]) if "TLS" in os.environ else {}
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, **secure)).run(sockets=[listener])


main()
