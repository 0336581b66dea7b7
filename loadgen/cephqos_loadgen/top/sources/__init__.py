"""Where samples come from: Prometheus, or exporters directly. The only part that asks servers."""
