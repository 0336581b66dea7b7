"""What makes load: command lines built and outputs read, both without running anything."""
