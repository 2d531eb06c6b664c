"""A server that takes a request and closes the connection without a word."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread


@contextmanager
def hanging_up() -> Iterator[tuple[str, list[bytes]]]:
    """Serve on a free port of 127.0.0.1; gives the base URL and what arrived."""
    arrived: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return  # the test is over
                with connection:
                    arrived.append(connection.recv(65_536))

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", arrived
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
