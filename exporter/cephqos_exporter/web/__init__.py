"""HTTP: the server and its pages, TLS and authentication as exporter-toolkit configures them."""
