"""The product holds no function or class that only tests use."""

import ast
import re
from collections import Counter
from pathlib import Path

PRODUCT = ("exporter", "loadgen", "alerts", "dashboards", "deploy")
# Called by their names by PyYAML, http.server and aiohttp.
CALLED_BY_LIBRARIES = {
    "ignore_aliases",
    *("do_GET", "do_POST", "log_message"),
    "handle_error",
}


def test_every_function_and_class_is_named_where_the_product_uses_it() -> None:
    code = [
        file.read_text(encoding="utf-8")
        for folder in PRODUCT
        for file in Path(folder).rglob("*.py")
    ]
    words = Counter(word for text in code for word in re.findall(r"\w+", text))
    defined = [
        node.name
        for text in code
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    assert len(defined) > 1000
    once = {name for name in defined if words[name] == 1 and not name.startswith("__")}
    assert once == CALLED_BY_LIBRARIES
