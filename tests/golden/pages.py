"""Pages without what depends on when and where a test runs."""

import re


def settled(page: str, varies: re.Pattern[str]) -> str:
    """The page with everything that varies replaced by a word."""
    page = re.sub(r'python_version="[^"]*"', 'python_version="3"', page)
    page = re.sub(r"^python_info{.*}", "python_info{}", page, flags=re.MULTILINE)
    return varies.sub(lambda found: found[0].rpartition(" ")[0] + " VARIES", page)
