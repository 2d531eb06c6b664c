"""A WSGI application over HTTP, on a free port of loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from werkzeug.serving import make_server


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve until the block ends; gives the base URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
