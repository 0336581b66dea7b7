"""What is written: all files of rules, and Alertmanager's configuration. Needs every other room."""
