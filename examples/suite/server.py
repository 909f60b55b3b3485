"""The same agent as an HTTP server: ``python server.py 8765``; port 0 picks a free port. Prints the port."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent import answer


class Handler(BaseHTTPRequestHandler):
    """Answer POST {"text": …, "seed": …} with {"reply": {"text": …}}."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps({"reply": {"text": answer(request["text"], seed=request["seed"])}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8765), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
