"""SLOs on the latency of clients: the form of their file (`spec`), and their rules (`groups`)."""
