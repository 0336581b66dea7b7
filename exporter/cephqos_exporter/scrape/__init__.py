"""The scrape, one way: fetch → collect → rendering → exposition; rounds share it among requests."""
