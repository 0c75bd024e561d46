"""What the server runs."""

from skdp.engines import flower_server

app = flower_server(n_nodes=3, patience=100.0)
