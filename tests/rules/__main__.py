"""`python -m tests.rules`: write the cases as promtool's files."""

from tests.rules.files import built

for path, text in built().items():
    path.write_text(text, encoding="utf-8")
    print(path)
