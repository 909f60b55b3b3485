"""The same agent behind an address: ``python server.py 8765``; port 0 is any free one, and is printed."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent import answer


class Handler(BaseHTTPRequestHandler):
    """POST {"text": …, "seed": …} and get {"reply": {"text": …}}."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps({"reply": {"text": answer(asked["text"], seed=asked["seed"])}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8765), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
