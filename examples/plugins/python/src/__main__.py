"""impi-transport-python: links over TCP, as a plugin in Python.

It shows the plugin's side of docs/plugin-protocol.md without the Go SDK. The job's
bytes pass through this process (data plane "stream"), so that a transport of yours can
do with them what it wants: see tcp.py.
"""

import plugin
import tcp

if __name__ == "__main__":
    plugin.serve(tcp.Transport())
