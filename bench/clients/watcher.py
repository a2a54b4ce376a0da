"""A watcher that asks as the live page does: python -m bench.clients.watcher SOCKET.

Owns: the connection.  Never: reads what it receives, ends by itself.  Prints `watching` when the
rows so far have arrived, which a page asks for once.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

END: Final = b"\n\n\r\n"
"""The end of a server-sent event, and of its chunk."""


def main() -> None:
    name = sys.argv[1].rpartition("/")[2].removesuffix(".sock")
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(sys.argv[1])
        path = f"/v1/clusters/{name}/stream?columns=true"
        door.sendall(f"GET {path} HTTP/1.1\r\nHost: kcluster\r\n\r\n".encode())
        head = door.recv(1 << 20)
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"refused: {head[:200]!r}")
        end = head[-len(END) :]
        while data := door.recv(1 << 20):
            end = (end + data)[-len(END) :]
            if end == END:
                print("watching", flush=True)
                break
        while door.recv(1 << 20):
            pass
    raise SystemExit("the stream has ended")


if __name__ == "__main__":
    main()
