"""What brings the other packages together: demo, stack, Grafana, replay."""
